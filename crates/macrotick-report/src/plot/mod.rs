//! Plots as SVG, inside a page or in a file of their own.

pub(crate) mod axis;
pub(crate) mod bars;
pub(crate) mod curves;
pub(crate) mod gantt;
pub(crate) mod histogram;
pub(crate) mod lines;
pub(crate) mod overlay;
pub(crate) mod spark;
pub(crate) mod stacked;
pub(crate) mod svg;
