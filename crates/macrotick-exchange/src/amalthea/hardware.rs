//! The processing units of a model: CPUs in order of appearance, each of a kind.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::element::{Element, Key, Refusal};
use super::model::Model;
use super::units::{frequency, whole, Ratio};
use crate::findings::Findings;

/// The CPUs of a model.
pub struct Hardware {
    /// The kind of each CPU.
    pub cpus: Vec<usize>,
    /// All kinds.
    pub kinds: Vec<Kind>,
    /// The CPU of each processing unit. Units that are no CPU, such as accelerators, have none.
    numbers: BTreeMap<Key, Option<u32>>,
    /// The frequency domains of CPUs.
    domains: BTreeSet<Key>,
}

/// CPUs with one definition and one frequency.
#[derive(Clone, PartialEq)]
pub struct Kind {
    /// The definition, which entries of a runnable can name.
    pub definition: Option<Key>,
    /// The name for messages.
    pub name: String,
    /// The ticks in a second.
    pub hertz: Result<Ratio, Rc<Refusal>>,
    /// The features that scale execution needs.
    features: Vec<Feature>,
}

/// A feature of a processing unit, such as instructions for each tick.
#[derive(Clone, PartialEq)]
struct Feature {
    category: String,
    name: String,
    value: Ratio,
}

/// The most processing units, together with those that are no CPU.
const MOST_UNITS: usize = 4096;
/// The most CPUs.
pub const MOST_CPUS: usize = 1024;
/// The most kinds. The cost of each runnable has a number for each.
const MOST_KINDS: usize = 64;

impl Hardware {
    /// Collects the processing units of all files.
    ///
    /// # Errors
    ///
    /// If there is none, or a definition or feature is wrong, or there are too many.
    pub fn read(model: &Model, findings: &mut Findings) -> Result<Hardware, Refusal> {
        let mut hardware =
            Hardware { cpus: Vec::new(), kinds: Vec::new(), numbers: BTreeMap::new(), domains: BTreeSet::new() };
        let mut ecus = BTreeSet::new();
        for part in model.part("hwModel") {
            for (unit, ecu) in units(part) {
                hardware.add(unit, model, findings)?;
                ecus.extend(ecu);
            }
        }
        if hardware.cpus.is_empty() {
            let reason = "the model has no processing unit, so ticks have no time: give the file with `hwModel`, too";
            return Err(model.refusal("hwModel", reason));
        }
        if ecus.len() > 1 {
            let text =
                format!("the CPUs of {} ECUs become those of one host: see `hosts` of the description", ecus.len());
            findings.remark("hwModel", text);
        }
        Ok(hardware)
    }

    fn add<'a>(&mut self, unit: Element<'a>, model: &Model<'a>, findings: &mut Findings) -> Result<(), Refusal> {
        if self.numbers.len() == MOST_UNITS {
            return Err(unit.refusal(format!("the model has more than {MOST_UNITS} processing units")));
        }
        let key = if unit.tag() == "cores" { "coreType" } else { "definition" };
        let definition = model.target_of(unit, key)?;
        let class = definition.and_then(|definition| definition.attribute("puType")).unwrap_or("CPU");
        if !["CPU", "_undefined_"].contains(&class) {
            findings.remark(unit.path(), "is no CPU and is left out");
            self.numbers.insert(unit.key(), None);
            return Ok(());
        }
        if self.cpus.len() == MOST_CPUS {
            return Err(unit.refusal(format!("the model has more than {MOST_CPUS} CPUs")));
        }
        let mut kind = Kind::new(unit, definition, model);
        let known = self.kinds.iter().position(|other| other.is(&kind));
        let index = known.unwrap_or(self.kinds.len());
        if known.is_none() {
            if index == MOST_KINDS {
                return Err(unit.refusal(format!("the CPUs have more than {MOST_KINDS} definitions or frequencies")));
            }
            // Many CPUs can share a definition with many features, so only the first one reads them.
            kind.features = definition.map_or(Ok(Vec::new()), |definition| features(definition, model))?;
            self.kinds.push(kind);
        }
        self.numbers.insert(unit.key(), Some(self.cpus.len() as u32));
        self.cpus.push(index);
        if let Ok(Some(domain)) = model.target_of(unit, "frequencyDomain") {
            if self.domains.insert(domain.key()) && can_be_slower(domain) {
                let text =
                    "the execution times hold at the default frequency: at a lower possible one, jobs take longer";
                findings.remark(domain.path(), text);
            }
        }
        Ok(())
    }

    /// Returns the CPU of a processing unit, or `None` if it is no CPU.
    pub fn cpu(&self, unit: Element) -> Option<u32> {
        self.numbers.get(&unit.key()).copied().flatten()
    }
}

impl Kind {
    /// Begins without features.
    fn new<'a>(unit: Element<'a>, definition: Option<Element<'a>>, model: &Model<'a>) -> Kind {
        Kind {
            definition: definition.map(|definition| definition.key()),
            name: definition.unwrap_or(unit).name().into(),
            hertz: ticks_per_second(unit, model).map_err(Rc::new),
            features: Vec::new(),
        }
    }

    /// Whether CPUs of both kinds have the same times.
    fn is(&self, other: &Kind) -> bool {
        self.definition == other.definition
            && match (&self.hertz, &other.hertz) {
                (Ok(one), Ok(other)) => one == other,
                (one, other) => one.is_err() && other.is_err(),
            }
    }

    /// Returns the work of a tick in the unit of an execution need: the least feature of this category. Without one,
    /// instructions have the feature `IPC`.
    pub fn feature(&self, need: &str) -> Option<Ratio> {
        let least = |is_wanted: &dyn Fn(&Feature) -> bool| {
            let values = self.features.iter().filter(|feature| is_wanted(feature)).map(|feature| feature.value);
            values.min_by(|one, other| (one.above * other.below).cmp(&(other.above * one.below)))
        };
        let of_category = least(&|feature| feature.category == need);
        let is_ipc = |feature: &Feature| feature.category == IPC || feature.name == IPC;
        of_category.or_else(|| least(&is_ipc).filter(|_| need == INSTRUCTIONS))
    }
}

/// The need that counts instructions.
pub const INSTRUCTIONS: &str = "Instructions";
const IPC: &str = "IPC";
/// The most ticks, or units of work, that a feature can have in its numerator and denominator.
const MOST_OF_FEATURE: i128 = 1 << 60;

/// Returns the features of a definition.
fn features<'a>(definition: Element<'a>, model: &Model<'a>) -> Result<Vec<Feature>, Refusal> {
    let features = model.targets(definition, "features")?.into_iter().map(Feature::read);
    let mut features = features.collect::<Result<Vec<_>, _>>()?;
    // Older files have a number at the type of the core.
    let per_cycle = whole(definition, "instructionsPerCycle")?.filter(|number| *number > 0);
    let value = per_cycle.map(|number| Ratio { above: number.into(), below: 1 });
    features.extend(value.map(|value| Feature { category: String::new(), name: IPC.into(), value }));
    Ok(features)
}

impl Feature {
    fn read(feature: Element) -> Result<Feature, Refusal> {
        let nested = feature.child("value").and_then(|value| value.attribute("value"));
        let text = feature.attribute("value").or(nested).unwrap_or("0");
        let within = |value: &Ratio| value.above > 0 && value.above.max(value.below) < MOST_OF_FEATURE;
        let Some(value) = Ratio::parse(text).filter(within) else {
            return Err(feature.refusal("the value of a feature must be a number above zero"));
        };
        let category = feature.parent().filter(|parent| parent.tag() == "featureCategories");
        let category = category.map(|category| category.name().to_owned()).unwrap_or_default();
        Ok(Feature { category, name: feature.name().into(), value })
    }
}

/// Returns the processing units of a part in the order of the file, each with the nearest ECU around it.
fn units(part: Element) -> Vec<(Element, Option<Key>)> {
    let mut units = Vec::new();
    // A file can have more levels than a recursion.
    let mut left = vec![(part, None)];
    while let Some((element, ecu)) = left.pop() {
        if is_unit(&element) {
            units.push((element, ecu));
        }
        let inner = if is_ecu(&element) { Some(element.key()) } else { ecu };
        let begin = left.len();
        left.extend(element.elements().map(|element| (element, inner)));
        left[begin..].reverse();
    }
    units
}

fn is_unit(element: &Element) -> bool {
    match element.tag() {
        "modules" => element.kind() == "ProcessingUnit",
        tag => tag == "cores",
    }
}

fn is_ecu(element: &Element) -> bool {
    element.tag() == "ecus" || element.attribute("structureType") == Some("ECU")
}

/// Whether a frequency domain has a possible frequency below its default.
fn can_be_slower(domain: Element) -> bool {
    let Some(Ok(default)) = domain.child("defaultValue").map(frequency) else { return false };
    let mut possible = domain.children("possibleValues").filter_map(|value| frequency(value).ok());
    possible.any(|hertz| hertz.is_less_than(default))
}

/// Returns the frequency: that of the domain, or in older files that of the quartz with the ratio of the prescaler.
fn ticks_per_second<'a>(unit: Element<'a>, model: &Model<'a>) -> Result<Ratio, Refusal> {
    if let Some(domain) = model.target_of(unit, "frequencyDomain")? {
        let default = domain.child("defaultValue");
        return frequency(default.ok_or_else(|| domain.refusal("the frequency domain has no `defaultValue`"))?);
    }
    let Some(prescaler) = unit.child("prescaler") else {
        return Err(unit.refusal("the processing unit has no frequency"));
    };
    let quartz = model.target_of(prescaler, "quartz")?.and_then(|quartz| quartz.child("frequency"));
    let hertz = frequency(quartz.ok_or_else(|| prescaler.refusal("the prescaler has no quartz with a frequency"))?)?;
    let text = prescaler.attribute("clockRatio").unwrap_or("1");
    let product = Ratio::parse(text).filter(|ratio| ratio.above > 0).and_then(|ratio| {
        Some(Ratio { above: ratio.above.checked_mul(hertz.above)?, below: ratio.below.checked_mul(hertz.below)? })
    });
    product.ok_or_else(|| prescaler.refusal("`clockRatio` must be a number above zero"))
}
