//! The report of a run, line by line.

use hoplake_testkit::TcpProxy;

use super::{
    ChaosReport, ChaosTest,
    clients::ServerClient,
    ledger::{Ledger, Outcome},
    run::Run,
};

impl Run {
    pub(super) fn tell(
        &self,
        proxy: &TcpProxy,
        ledger: &Ledger,
        version: u64,
        named: usize,
        time_s: f64,
    ) -> ChaosReport {
        let ChaosTest { seed, writers, appliers, servers, .. } = self.chaos;
        let mut lines = vec![
            format!("seed {seed}: {time_s:.0} s, {writers} writers, {appliers} appliers, {servers} servers"),
            format!(
                "commits acknowledged: {}; rejected, and not there: {}",
                ledger.count(|_, outcome| matches!(outcome, Outcome::Acknowledged(_))),
                ledger.count(|_, outcome| outcome == Outcome::Rejected)
            ),
            self.turned_out(ledger, Outcome::Unknown, "commits with an unknown outcome"),
            self.turned_out(ledger, Outcome::Began, "commits whose writer was killed"),
            format!(
                "kills: {}, {} of them of servers; checks of a version: {}",
                self.kills, self.server_kills, self.checks
            ),
            faults(proxy),
            format!(
                "versions: {version}; objects of the last: {named}; sorted runs of a section before the last compaction: {}",
                self.runs
            ),
        ];
        lines.extend(upkeep(ledger));
        lines.extend(steps(ledger));
        lines.extend(self.asked.iter().flat_map(ServerClient::lines));
        if servers > 0 {
            lines.push(format!("servers recovered within {:.1} s", self.recovered.as_secs_f64()));
        }
        lines.extend(self.watch.memory().lines(time_s));
        ChaosReport { lines }
    }

    fn turned_out(&self, ledger: &Ledger, outcome: Outcome, name: &str) -> String {
        let all = ledger.count(|_, found| found == outcome);
        let there = ledger.count(|attempt, found| found == outcome && self.seen.contains_key(attempt));
        format!("{name}: {all}, of which {there} were seen and {} not", all - there)
    }
}

fn faults(proxy: &TcpProxy) -> String {
    let faults = proxy.counts().into_iter().map(|(fault, count)| format!("{fault:?} {count}"));
    format!("faults on {} connections: {}", proxy.connections(), faults.collect::<Vec<_>>().join(", "))
}

fn upkeep(ledger: &Ledger) -> [String; 2] {
    let Ledger { compactions, merges, parts, vacuums, versions_removed, objects_removed, aborted, .. } = ledger;
    let tried = ledger.steps("compaction");
    [
        format!(
            "compactions: {} begun, {} killed, {} failed, {compactions} finished; {parts} sorted runs merged into {merges}",
            tried.begun,
            tried.begun - tried.ended,
            tried.failed
        ),
        format!(
            "vacuums: {vacuums}, which removed {versions_removed} versions and {objects_removed} objects, and took \
             {aborted} writers for dead"
        ),
    ]
}

/// How long each step took, and why some failed.
fn steps(ledger: &Ledger) -> Vec<String> {
    let step = |(name, steps): (&String, &super::ledger::Steps)| {
        format!("{name} {} ({} failed, longest {:.1} s)", steps.begun, steps.failed, steps.longest.as_secs_f64())
    };
    let mut lines = vec![format!("steps: {}", ledger.steps.iter().map(step).collect::<Vec<_>>().join(", "))];
    let failure = |(what, (count, last)): (&String, &(u64, String))| format!("  {what} {count}, lastly: {last}");
    lines.extend(ledger.failures.iter().map(failure));
    lines
}
