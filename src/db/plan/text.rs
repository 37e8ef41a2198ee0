//! A plan in words, for the console and the command line.

use super::changes::Change;
use super::{Blocker, Plan};

/// As many changed objects are named at most.
const NAMED: usize = 20;

impl Plan {
    /// The plan in lines: from what to what, what changes, the steps with their locks, what is in the way.
    pub fn summary(&self) -> Vec<String> {
        let mut out = Vec::new();
        let short = |digest: &str| digest.chars().take(8).collect::<String>();
        let from = match &self.in_force {
            Some(v) => format!("from version {} ({} {})", v.version, v.name, short(&v.digest)),
            None => "from nothing".to_owned(),
        };
        out.push(format!(
            "plan {} in {}: {from} to {} {}",
            short(&self.digest),
            self.database,
            self.name,
            short(&self.policy_digest)
        ));
        if self.unchanged {
            out.push("unchanged: this very policy is in force".to_owned());
        } else {
            self.changes(&mut out);
        }
        for blocker in &self.blockers {
            out.push(format!("in the way: {blocker}"));
            out.extend(blocker.help.iter().map(|help| format!("  {help}")));
        }
        out.extend(self.notes.iter().map(|note| format!("note: {note}")));
        out
    }

    /// How many objects of each sort of change there are: `3 new, 1 changed, 40 same`.
    pub fn counts(&self) -> String {
        let all = [Change::New, Change::Changed, Change::Missing, Change::Dropped, Change::Same];
        let words: Vec<String> = all
            .into_iter()
            .filter_map(|change| {
                let n = self.objects.iter().filter(|object| object.change == change).count();
                (n > 0).then(|| format!("{n} {}", change.word()))
            })
            .collect();
        if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
    }

    fn changes(&self, out: &mut Vec<String>) {
        out.push(format!("objects: {}", self.counts()));
        let changed = self.objects.iter().filter(|object| object.change != Change::Same);
        // A first apply is all new; naming everything would hide the rest of the plan.
        let named: Vec<_> = changed.filter(|o| self.in_force.is_some() || o.change != Change::New).collect();
        for object in named.iter().take(NAMED) {
            out.push(format!("  {} {} {}", object.change.word(), object.kind.word(), object.name));
        }
        if named.len() > NAMED {
            out.push(format!("  and {} more", named.len() - NAMED));
        }
        for graph in &self.graphs {
            let does = if graph.build { "build" } else { "keep" };
            out.push(format!("index of {}: {does}, about {} rows of {}", graph.title, graph.rows, graph.table));
        }
        for (at, step) in self.steps.iter().enumerate() {
            let mut line = format!("step {}: {}", at + 1, step.title);
            if step.objects > 0 {
                line.push_str(&format!(" ({})", step.objects));
            }
            if step.seconds >= 0.05 {
                line.push_str(&format!(", about {:.1} s", step.seconds));
            }
            if !step.locks.is_empty() {
                line.push_str(&format!(", locks {}", step.locks_text()));
            }
            out.push(line);
        }
        out.push(format!("time: about {:.1} s of work, waiting for locks not counted", self.seconds));
        if self.disk > 0 {
            out.push(format!("disk: about {:.1} MB for new indexes", self.disk as f64 / 1e6));
        }
        out.push(format!("locks: at most {} of {} free", self.locks.needed, self.locks.free));
    }
}

/// Blockers as one sentence, for an error.
pub(crate) fn blocked(blockers: &[Blocker]) -> String {
    match blockers {
        [] => "the policy cannot be applied".to_owned(),
        [one] => one.to_string(),
        [first, rest @ ..] => format!("{first}, and {} more in the way", rest.len()),
    }
}
