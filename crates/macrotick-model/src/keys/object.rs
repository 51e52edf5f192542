//! Values that are mappings.

/// Declares a struct of the description and its keys. Each line has these parts:
///
/// * the key, the field and its type,
/// * the kind of the value, if it is not the kind of the type,
/// * `required`, `optional "the default"` (nothing, `false`, an empty list), or `or "the default" { expression }`. The
///   expression can use the fields above it.
/// * a sentence, which is also the documentation of the field.
///
/// With `short "KEY"`, the value of that key can replace a mapping with no other key. `flat` lines come before the
/// others: they declare forms with keys in the mapping itself, of which it has exactly one.
macro_rules! object {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident: $what:literal $(short $short:literal)? {
            $(
                flat $flat:ident: $flat_type:ty, $flat_presence:ident $($flat_otherwise:literal)? $($flat_default:block)?
                = $flat_about:literal;
            )*
            $(
                $key:literal $field:ident: $type:ty $([$kind:expr])?,
                $presence:ident $($otherwise:literal)? $($default:block)? = $about:literal;
            )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        $vis struct $name {
            $(#[doc = $flat_about] pub $flat: $flat_type,)*
            $(#[doc = $about] pub $field: $type,)*
        }

        impl $name {
            /// The keys of the mapping.
            pub(crate) const OBJECT: &'static $crate::keys::Object = &$crate::keys::Object {
                what: $what,
                short: $crate::keys::object!(@short $($short)?),
                flat: &[$($crate::keys::Flat {
                    forms: <$flat_type>::FORMS,
                    otherwise: $crate::keys::object!(@otherwise $flat_presence $($flat_otherwise)?),
                },)*],
                keys: &[$($crate::keys::Key {
                    name: $key,
                    kind: $crate::keys::object!(@kind $type $(, $kind)?),
                    otherwise: $crate::keys::object!(@otherwise $presence $($otherwise)?),
                    about: $about,
                },)*],
            };
        }

        impl $crate::keys::Field for $name {
            const KIND: $crate::keys::Kind = $crate::keys::Kind::Object($name::OBJECT);

            #[allow(unused_variables, reason = "an object may have no key, or none that needs its name")]
            fn read(
                cx: &mut $crate::parse::Context,
                node: &$crate::parse::Node,
                path: &str,
                _: &$crate::keys::Kind,
            ) -> Self {
                let object = $name::OBJECT;
                let Some(fields) = cx.fields(node, path, object) else { return Self::unread() };
                let whose = object.whose(&fields);
                $(
                    let form = cx.flat(&fields, <$flat_type>::FORMS, &whose);
                    let $flat: $flat_type = $crate::keys::object!(@flat $flat_presence cx, fields, form, path, whose, $flat_type, $($flat_default)?);
                )*
                $(
                    let key = object.key($key);
                    let $field: $type = $crate::keys::object!(@read $presence cx, fields, key, whose, $($default)?);
                )*
                $name { $($flat,)* $($field,)* }
            }

            fn unread() -> Self {
                $name {
                    $($flat: <$flat_type as $crate::keys::Field>::unread(),)*
                    $($field: <$type as $crate::keys::Field>::unread(),)*
                }
            }

            fn write(&self) -> $crate::keys::Text {
                let entries = vec![$($crate::keys::object!(@write $presence self.$field, $key),)*];
                let flat = vec![$($crate::keys::Field::write(&self.$flat),)*];
                $crate::keys::shortened($crate::keys::beside_name(entries, flat), $name::OBJECT)
            }

            #[allow(unused_variables, reason = "an object may have no key")]
            fn check(&self, path: &str, _: &str, _: &$crate::keys::Kind, found: &mut $crate::keys::Found) {
                $($crate::keys::Field::check(
                    &self.$flat,
                    path,
                    "",
                    &<$flat_type as $crate::keys::Field>::KIND,
                    found,
                );)*
                $($crate::keys::Field::check(
                    &self.$field,
                    &$crate::parse::join(path, $key),
                    $key,
                    &$name::OBJECT.key($key).kind,
                    found,
                );)*
            }
        }
    };
    (@short) => { None };
    (@short $short:literal) => { Some($short) };
    (@kind $type:ty) => { <$type as $crate::keys::Field>::KIND };
    (@kind $type:ty, $kind:expr) => { $kind };
    (@otherwise required) => { None };
    (@otherwise optional $otherwise:literal) => { Some($otherwise) };
    (@otherwise or $otherwise:literal) => { Some($otherwise) };
    (@flat required $cx:expr, $fields:ident, $form:ident, $path:ident, $whose:ident, $type:ty,) => {
        match $form {
            Some(form) => <$type>::from_form($cx, form, $path),
            None => {
                $cx.no_form(&$fields, <$type>::FORMS, &$whose);
                <$type as $crate::keys::Field>::unread()
            }
        }
    };
    (@flat or $cx:expr, $fields:ident, $form:ident, $path:ident, $whose:ident, $type:ty, $default:block) => {
        match $form {
            Some(form) => <$type>::from_form($cx, form, $path),
            None => $default,
        }
    };
    (@read required $cx:expr, $fields:ident, $key:ident, $whose:ident,) => {
        $crate::keys::required($cx, &$fields, $key, &$whose)
    };
    (@read optional $cx:expr, $fields:ident, $key:ident, $whose:ident,) => {
        $crate::keys::optional($cx, &$fields, $key).unwrap_or_default()
    };
    (@read or $cx:expr, $fields:ident, $key:ident, $whose:ident, $default:block) => {
        $crate::keys::optional($cx, &$fields, $key).unwrap_or_else(|| $default)
    };
    (@write optional $value:expr, $key:literal) => {
        (!$crate::keys::Field::is_left_out(&$value)).then(|| ($key, $crate::keys::Field::write(&$value)))
    };
    (@write $presence:ident $value:expr, $key:literal) => {
        Some(($key, $crate::keys::Field::write(&$value)))
    };
}

pub(crate) use object;
