//! Values with one of several forms.

/// Declares an enum of the description, with a sentence for each form:
///
/// * `plain`: a plain value.
/// * `word`: a word.
/// * `also`: a word that is short for another form.
/// * `bare`: a key without a value of its own, written `{}`.
/// * `key`: a key with a value. A mapping has exactly one key of the enum.
macro_rules! forms {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident: $what:literal {
            $(plain $plain:ident: $plain_type:ty $([$plain_kind:expr])? = $plain_about:literal;)?
            $(word $word:literal $unit:ident = $word_about:literal;)*
            $(also $short:literal { $long:expr } = $short_about:literal;)*
            $(bare $bare:literal $bare_unit:ident = $bare_about:literal;)*
            $(key $key:literal $variant:ident: $type:ty $([$kind:expr])? = $about:literal;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        $vis enum $name {
            $(#[doc = $plain_about] $plain($plain_type),)?
            $(#[doc = $word_about] $unit,)*
            $(#[doc = $bare_about] $bare_unit,)*
            $(#[doc = $about] $variant($type),)*
        }

        impl $name {
            pub(crate) const FORMS: &'static $crate::keys::Forms = &$crate::keys::Forms {
                what: $what,
                plain: $crate::keys::forms!(@plain $($plain_type $([$plain_kind])?, $plain_about)?),
                words: &[$(($word, $word_about),)* $(($short, $short_about),)*],
                keys: &[$(($bare, $crate::keys::BARE, $bare_about),)* $(($key, $crate::keys::object!(@kind $type $(, $kind)?), $about),)*],
            };

            /// Decodes a word, or a key and its value.
            #[allow(unused_variables, reason = "an enum may have words only, or none")]
            pub(crate) fn from_form(cx: &mut $crate::parse::Context, form: $crate::parse::Form, path: &str) -> Self {
                match form {
                    $($crate::parse::Form::Word($word) => $name::$unit,)*
                    $($crate::parse::Form::Word($short) => $long,)*
                    $($crate::parse::Form::Key($bare, node, path) => {
                        $crate::keys::read_bare(cx, node, &path);
                        $name::$bare_unit
                    })*
                    $($crate::parse::Form::Key($key, node, path) => {
                        let kind = &$crate::keys::object!(@kind $type $(, $kind)?);
                        $name::$variant($crate::keys::Field::read(cx, node, &path, kind))
                    })*
                    _ => <Self as $crate::keys::Field>::unread(),
                }
            }
        }

        impl $crate::keys::Field for $name {
            const KIND: $crate::keys::Kind = $crate::keys::Kind::Forms($name::FORMS);

            fn read(
                cx: &mut $crate::parse::Context,
                node: &$crate::parse::Node,
                path: &str,
                _: &$crate::keys::Kind,
            ) -> Self {
                let form = cx.form(node, path, $name::FORMS);
                if let $crate::parse::Form::Plain = form {
                    $({
                        let kind = &$crate::keys::object!(@kind $plain_type $(, $plain_kind)?);
                        return $name::$plain($crate::keys::Field::read(cx, node, path, kind));
                    })?
                }
                $name::from_form(cx, form, path)
            }

            fn unread() -> Self {
                $crate::keys::forms!(@unread $name $($plain)? $(, $unit)* $(, $bare_unit)* $(; $variant)*)
            }

            fn write(&self) -> $crate::keys::Text {
                match self {
                    $($name::$plain(value) => $crate::keys::Field::write(value),)?
                    $($name::$unit => $crate::keys::Text::Word($word.into()),)*
                    $($name::$bare_unit => $crate::keys::Text::Map(vec![($bare, $crate::keys::Text::Map(Vec::new()))]),)*
                    $($name::$variant(value) => {
                        $crate::keys::Text::Map(vec![($key, $crate::keys::Field::write(value))])
                    })*
                }
            }

            #[allow(unused_variables, reason = "an enum may have words only")]
            fn check(
                &self,
                path: &str,
                key: &str,
                _: &$crate::keys::Kind,
                found: &mut $crate::keys::Found,
            ) {
                match self {
                    $($name::$plain(value) => {
                        let kind = &$crate::keys::object!(@kind $plain_type $(, $plain_kind)?);
                        $crate::keys::Field::check(value, path, key, kind, found);
                    })?
                    $($name::$unit => {})*
                    $($name::$bare_unit => {})*
                    $($name::$variant(value) => {
                        let kind = &$crate::keys::object!(@kind $type $(, $kind)?);
                        $crate::keys::Field::check(value, &$crate::parse::join(path, $key), $key, kind, found);
                    })*
                }
            }
        }
    };
    (@plain) => { None };
    (@plain $type:ty $([$kind:expr])?, $about:literal) => { Some(($crate::keys::object!(@kind $type $(, $kind)?), $about)) };
    (@unread $name:ident $plain:ident $(, $unit:ident)* $(; $variant:ident)*) => {
        $name::$plain($crate::keys::Field::unread())
    };
    (@unread $name:ident , $first:ident $(, $unit:ident)* $(; $variant:ident)*) => { $name::$first };
    (@unread $name:ident ; $first:ident $(; $variant:ident)*) => { $name::$first($crate::keys::Field::unread()) };
}

pub(crate) use forms;
