//! Published results about sending at an instant.

/// A published result: what it is, its figures, and its price.
struct Row {
    what: &'static str,
    figures: &'static str,
    price: &'static str,
}

const ROWS: [Row; 5] = [
    Row {
        what: "RTnet with TDMA, on a network card (Barletta et al., ECRTS 2022, section 5.4)",
        figures: "error of sending: mean 0.21 us, standard deviation 1.0 us",
        price: "a co-kernel with a network stack and drivers of its own; a master that sends synchronisation frames",
    },
    Row {
        what: "KeepON (NSDI 2026), on a network card",
        figures: "up to 130 times more precise than the default driver",
        price: "a driver that keeps the link full of placeholder frames and replaces them: the whole link",
    },
    Row { what: "P4-TAS, a switch", figures: "at most 86 ns", price: "a programmable switch ASIC" },
    Row {
        what: "launch time of the network card i210 (Linux driver igb)",
        figures: "steps of 32 ns",
        price: "this card, and a queue for it; each frame has an instant of its own",
    },
    Row {
        what: "RTC-Testbench 5.5, on network cards",
        figures: "256 frames in each cycle of 1 ms for 4 h, none late",
        price: "cores of its own for the workloads",
    },
];

/// Returns the published results beside those of this page.
pub fn markdown() -> String {
    let rows: String =
        ROWS.iter().map(|Row { what, figures, price }| format!("| {what} | {figures} | {price} |\n")).collect();
    format!(
        "### beside published results\n\n| | figures | price |\n|---|---|---|\n{rows}\n\
         These figures come from wires and caches, and those of this page from virtual time. A veth is no wire: the \
         time stamp is taken when the far end receives the frame, after the instructions of the kernel. A network card \
         adds its own times, and a real processor its caches. The price of exact gates is the lead: {} us of one CPU \
         for each opening with waiting frames, and nothing of the link.\n",
        super::classes::LEAD_NS / 1000
    )
}
