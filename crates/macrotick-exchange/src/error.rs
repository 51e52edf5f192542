//! The reasons why an import or an export fails.

/// The reason why a text does not become a system.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// The text is longer than [`MAX_BYTES`](crate::MAX_BYTES), or the limit of its tool.
    #[error("{file}: the file is longer than {most} bytes")]
    Long {
        /// The name of the file.
        file: String,
        /// The limit in bytes.
        most: usize,
    },
    /// The text does not have the grammar of its tool.
    #[error("{file}:{line}:{column}: {message}")]
    Syntax {
        /// The name of the file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// The error.
        message: String,
    },
    /// Values are wrong, or no system has their meaning.
    #[error("{}", lines(.file, .refusals))]
    Refused {
        /// The name of the file. It is empty if each refusal names its own one.
        file: String,
        /// Each value with its path, such as `tasks.thread0.phases`, and the reason. There is at least one.
        refusals: Vec<String>,
    },
    /// The file is well-formed, but its system breaks rules of a description.
    #[error("{}", lines(.file, .problems))]
    Invalid {
        /// The name of the file.
        file: String,
        /// Each broken rule with the path in the system. There is at least one.
        problems: Vec<String>,
    },
}

/// The reason why a system cannot be written for another tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    /// Values have no form in the other tool.
    #[error("{}", lines("", .refusals))]
    Refused {
        /// Each value with its path, such as `tasks[0].period`, and the reason. There is at least one.
        refusals: Vec<String>,
    },
}

/// The most reasons in the text of an error.
const MOST_SHOWN: usize = 20;

/// Writes one line for each reason, up to a limit, each with the name of the file if there is one.
fn lines(file: &str, reasons: &[String]) -> String {
    let begin = if file.is_empty() { String::new() } else { format!("{file}: ") };
    let mut lines: Vec<String> = reasons.iter().take(MOST_SHOWN).map(|reason| format!("{begin}{reason}")).collect();
    if reasons.len() > MOST_SHOWN {
        lines.push(format!("{begin}{} more errors are not shown", reasons.len() - MOST_SHOWN));
    }
    lines.join("\n")
}
