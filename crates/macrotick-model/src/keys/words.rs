//! Values that are one of several words.

/// Declares an enum of the description with words as its values.
macro_rules! words {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident: $what:literal {
            $($word:literal $variant:ident = $about:literal;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        $vis enum $name {
            $(#[doc = $about] $variant,)*
        }

        impl $name {
            /// All values, in the order of the reference.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            pub(crate) const WORDS: &'static $crate::keys::Words =
                &$crate::keys::Words { what: $what, words: &[$(($word, $about),)*] };

            /// Returns the word in a description.
            pub const fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)*
                }
            }
        }

        impl $crate::keys::Field for $name {
            const KIND: $crate::keys::Kind = $crate::keys::Kind::Words($name::WORDS);

            fn read(
                cx: &mut $crate::parse::Context,
                node: &$crate::parse::Node,
                path: &str,
                _: &$crate::keys::Kind,
            ) -> Self {
                let index = cx.word(node, path, $name::WORDS);
                index.map_or_else(Self::unread, |index| $name::ALL[index])
            }

            fn unread() -> Self {
                $name::ALL[0]
            }

            fn write(&self) -> $crate::keys::Text {
                $crate::keys::Text::Word(self.name().into())
            }

            fn check(&self, _: &str, _: &str, _: &$crate::keys::Kind, _: &mut $crate::keys::Found) {}
        }
    };
}

pub(crate) use words;
