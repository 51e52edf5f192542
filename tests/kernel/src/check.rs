//! The result of a scenario, and the macros for its checks.

/// `Ok` if a scenario holds, otherwise the reason why it does not.
pub type Check<T = ()> = Result<T, String>;

/// Returns an error from the surrounding function unless a condition holds.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err(format!($($message)+));
        }
    };
}

/// Returns an error from the surrounding function unless two values are equal.
#[macro_export]
macro_rules! ensure_eq {
    ($left:expr, $right:expr, $($message:tt)+) => {{
        let (left, right) = (&$left, &$right);
        if left != right {
            return Err(format!("{}: {:?}, expected {:?}", format!($($message)+), left, right));
        }
    }};
}

/// Turns an errno into a reason.
pub trait Explain<T> {
    /// Adds `what`, the operation that failed with the errno.
    fn explain(self, what: &str) -> Check<T>;
}

impl<T> Explain<T> for Result<T, i32> {
    fn explain(self, what: &str) -> Check<T> {
        self.map_err(|errno| format!("{what}: {}", std::io::Error::from_raw_os_error(errno)))
    }
}
