//! Reverts changes of this host in reverse order, unless all of them succeed.

/// The steps that revert changes. They run when the value is dropped.
#[derive(Default)]
pub struct Undo(Vec<Box<dyn FnOnce()>>);

impl Undo {
    /// Adds a step that reverts a change.
    pub fn later(&mut self, step: impl FnOnce() + 'static) {
        self.0.push(Box::new(step));
    }

    /// Drops all steps, because all changes succeeded.
    pub fn forget(mut self) {
        self.0.clear();
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        while let Some(step) = self.0.pop() {
            step();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    fn steps(succeed: bool) -> Vec<u32> {
        let done = Rc::new(RefCell::new(Vec::new()));
        let mut undo = Undo::default();
        for step in [1, 2] {
            let done = done.clone();
            undo.later(move || done.borrow_mut().push(step));
        }
        if succeed {
            undo.forget();
        } else {
            drop(undo);
        }
        done.take()
    }

    #[test]
    fn only_a_failure_is_undone_and_backwards() {
        assert_eq!(steps(false), [2, 1]);
        assert!(steps(true).is_empty());
    }
}
