//! Long work: planning, applying, verifying, repairing, testing.

use super::dialog;
use crate::app::command::Command;
use crate::app::effect::Effect;
use crate::app::model::apply::{Apply, NotApplied, Plan, Stage};
use crate::app::model::policy::TestRun;
use crate::app::model::verify::Mode;
use crate::app::model::{About, Answer, Job, Level, Model};
use crate::db::progress::{ApplyReport, VerifyBatch};

/// Runs a command of the Apply or the Verify screen.
pub fn run(model: &mut Model, command: Command) -> Vec<Effect> {
    match command {
        Command::MakePlan => plan(model),
        Command::ApplyNow => ask_apply(model),
        Command::CancelApply => cancel(model),
        Command::VerifyStep => verify(model, Mode::Stepping),
        Command::VerifyRun => verify(model, Mode::Running),
        Command::VerifyResume => resume(model),
        Command::VerifyPause => halt(model, Mode::Pausing, Mode::Paused),
        Command::VerifyStop => halt(model, Mode::Stopping, Mode::Stopped),
        Command::VerifyBigger => resize(model, |size| size.saturating_mul(2).min(100_000)),
        Command::VerifySmaller => resize(model, |size| (size / 2).max(10)),
        Command::VerifyRepair => ask_repair(model),
        _ => Vec::new(),
    }
}

/// Says why there is no server to ask, when there is none.
pub fn need_link(model: &mut Model) -> bool {
    if model.link.is_up() {
        return true;
    }
    let why = model.link.why_no_data();
    model.say(Level::Warn, why);
    false
}

/// Plans an apply of the text as it stands.
pub fn plan(model: &mut Model) -> Vec<Effect> {
    if matches!(model.apply.stage, Stage::Running | Stage::Cancelling) {
        model.say(Level::Warn, "an apply runs");
        return Vec::new();
    }
    if model.runs(Job::Plan) || !need_link(model) {
        return Vec::new();
    }
    let (mistakes, _) = model.policy.counts();
    if !model.policy.stale() && mistakes > 0 {
        let s = if mistakes == 1 { "" } else { "s" };
        model.say(Level::Warn, format!("{} has {mistakes} mistake{s}; nothing to plan", model.policy.name));
        return Vec::new();
    }
    model.jobs.push(Job::Plan);
    model.apply = Apply { stage: Stage::Planning, ..Apply::default() };
    vec![Effect::Plan { name: super::policy::file(model), text: model.policy.text(), revision: model.policy.revision }]
}

/// A plan was made.
pub fn planned(model: &mut Model, result: Result<Box<Plan>, String>) -> Vec<Effect> {
    end(model, Job::Plan);
    match result {
        Ok(plan) => {
            model.worked(About::Plan);
            model.apply.stage = Stage::Planned;
            model.apply.plan = Some(*plan);
        }
        Err(why) => {
            model.apply.stage = Stage::Failed(crate::text::line(&why).into_owned());
            model.fail(About::Plan, why);
        }
    }
    Vec::new()
}

fn ask_apply(model: &mut Model) -> Vec<Effect> {
    if !need_link(model) {
        return Vec::new();
    }
    let (Stage::Planned, Some(plan)) = (&model.apply.stage, &model.apply.plan) else {
        let known = matches!(model.apply.stage, Stage::Running | Stage::Cancelling | Stage::Planning);
        if known {
            model.say(Level::Warn, "wait for what runs");
            return Vec::new();
        }
        return plan_first(model);
    };
    if plan.revision != model.policy.revision {
        model.say(Level::Warn, "the text changed since this plan; planning again");
        return self::plan(model);
    }
    if let Some(refusal) = plan.refusals.first().cloned() {
        model.fail(About::Plan, refusal);
        return Vec::new();
    }
    if plan.unchanged {
        model.say(Level::Ok, "unchanged: this very policy is in force");
        return Vec::new();
    }
    let from = plan.from.map_or("no policy is in force yet".to_owned(), |v| format!("v{v} is in force now"));
    let where_to = model.link.facts().map_or_else(String::new, |f| format!("{} on {}", f.database, f.server));
    let mut lines = vec![format!("Apply {} to {where_to}; {from}.", model.policy.name)];
    lines.extend(plan.steps.iter().filter(|s| s.lock.contains("EXCLUSIVE")).map(|s| format!("{}: {}", s.what, s.lock)));
    lines.push("One transaction: all of it, or nothing.".to_owned());
    lines.truncate(8);
    dialog::ask(model, "Apply this plan?", lines, "Apply", Answer::Apply);
    Vec::new()
}

fn plan_first(model: &mut Model) -> Vec<Effect> {
    model.say(Level::Info, "planning first; press again when the plan is there");
    plan(model)
}

/// The answer was to apply.
pub fn apply(model: &mut Model) -> Vec<Effect> {
    if !need_link(model) {
        return Vec::new();
    }
    if model.apply.plan.as_ref().is_none_or(|plan| plan.revision != model.policy.revision) {
        model.say(Level::Warn, "the text changed since this plan; plan again");
        return Vec::new();
    }
    model.jobs.push(Job::Apply);
    model.apply.stage = Stage::Running;
    model.apply.phases.clear();
    model.apply.log.clear();
    (model.apply.waiting, model.apply.waits_in) = (None, 0);
    model.apply.began = model.clock;
    let plan = model.apply.plan.as_ref().map(|plan| plan.digest.clone()).unwrap_or_default();
    vec![Effect::Apply { name: super::policy::file(model), text: model.policy.text(), plan }]
}

fn cancel(model: &mut Model) -> Vec<Effect> {
    if model.apply.stage != Stage::Running {
        model.say(Level::Info, "no apply runs");
        return Vec::new();
    }
    model.apply.stage = Stage::Cancelling;
    model.say(Level::Warn, "cancel sent; waiting for the server to roll back");
    vec![Effect::CancelApply]
}

/// The apply ended.
pub fn applied(model: &mut Model, result: Result<ApplyReport, NotApplied>) -> Vec<Effect> {
    end(model, Job::Apply);
    let clock = model.clock;
    model.apply.end_phase(clock);
    model.apply.waiting = None;
    match result {
        Ok(report) => {
            let words = if report.unchanged {
                "unchanged: this very policy was in force".to_owned()
            } else {
                format!("applied: v{} is in force, {:.1} s", report.version, report.seconds)
            };
            model.say(Level::Ok, words);
            model.apply.stage = Stage::Done(report);
        }
        Err(NotApplied::RolledBack(why)) => {
            let why = crate::text::line(&why).into_owned();
            model.say(Level::Error, format!("not applied: {why}"));
            model.apply.stage = Stage::Failed(why);
        }
        Err(NotApplied::Unknown(why)) => {
            let why = crate::text::line(&why).into_owned();
            model.say(Level::Error, why.clone());
            model.apply.stage = Stage::Unknown(why);
        }
    }
    Vec::new()
}

fn verify(model: &mut Model, wanted: Mode) -> Vec<Effect> {
    if !need_link(model) {
        return Vec::new();
    }
    let mode = model.verify.mode;
    if mode.busy() {
        model.verify.mode = wanted;
        return Vec::new();
    }
    let goes_on = matches!(mode, Mode::Paused | Mode::Failed) || (mode == Mode::Stopped && wanted == Mode::Stepping);
    if !goes_on {
        let clock = model.clock;
        model.verify.begin(clock);
    }
    next_batch(model, wanted)
}

fn resume(model: &mut Model) -> Vec<Effect> {
    if model.verify.cursor.is_none() {
        model.say(Level::Info, "there is no cursor to go on from; r runs from the beginning");
        return Vec::new();
    }
    if model.verify.mode.busy() || !need_link(model) {
        return Vec::new();
    }
    next_batch(model, Mode::Running)
}

fn next_batch(model: &mut Model, mode: Mode) -> Vec<Effect> {
    if !model.runs(Job::Verify) {
        model.jobs.push(Job::Verify);
    }
    model.verify.mode = mode;
    vec![Effect::VerifyBatch { cursor: model.verify.cursor.clone(), size: model.verify.size }]
}

fn halt(model: &mut Model, while_busy: Mode, at_rest: Mode) -> Vec<Effect> {
    match model.verify.mode {
        mode if mode.busy() => model.verify.mode = while_busy,
        Mode::Paused => model.verify.mode = at_rest,
        _ => model.say(Level::Info, "no verify runs"),
    }
    Vec::new()
}

fn resize(model: &mut Model, size: impl Fn(u32) -> u32) -> Vec<Effect> {
    model.verify.size = size(model.verify.size);
    Vec::new()
}

/// A batch was checked.
pub fn verified(model: &mut Model, result: Result<VerifyBatch, String>) -> Vec<Effect> {
    match result {
        Ok(batch) => {
            model.worked(About::Verify);
            let found = batch.wrong.first().map(|w| format!("wrong: {} {}, {}", w.ty, w.id, w.what));
            if let Some(words) = found {
                model.say(Level::Error, words);
            }
            if model.verify.batch(batch) {
                let mode = model.verify.mode;
                return next_batch(model, mode);
            }
            end(model, Job::Verify);
            if model.verify.mode == Mode::Done {
                verify_done(model);
            }
        }
        Err(why) => {
            end(model, Job::Verify);
            let why = crate::text::line(&why).into_owned();
            model.fail(About::Verify, format!("this batch failed: {why}"));
            model.verify.failure = Some(why);
            model.verify.mode = Mode::Failed;
        }
    }
    Vec::new()
}

fn verify_done(model: &mut Model) {
    let checked = crate::text::count(model.verify.checked);
    match model.verify.wrong_total() {
        0 => model.say(Level::Ok, format!("verify: true, {checked} checked, {:.1} s", model.verify.seconds)),
        wrong => {
            let key = model.keymap.key(Command::VerifyRepair).to_owned();
            model.say(Level::Error, format!("verify: false, {wrong} of {checked} wrong; {key} repairs"));
        }
    }
}

fn ask_repair(model: &mut Model) -> Vec<Effect> {
    let count = model.verify.wrong.len();
    if count == 0 {
        model.say(Level::Info, "nothing was found wrong");
        return Vec::new();
    }
    if model.verify.mode.busy() {
        model.say(Level::Warn, "pause or stop the verify first");
        return Vec::new();
    }
    if !need_link(model) {
        return Vec::new();
    }
    let s = if count == 1 { "" } else { "s" };
    let mut lines = vec![format!("The stored ancestors of {count} object{s} are computed anew and written:")];
    lines.extend(
        model.verify.wrong.iter().take(4).map(|w| crate::text::line(&format!("{} {}", w.ty, w.id)).into_owned()),
    );
    if count > 4 {
        lines.push(format!("and {} more", count - 4));
    }
    lines.push("No table of the application is changed.".to_owned());
    dialog::ask(model, "Repair?", lines, &format!("Repair {count}"), Answer::Repair);
    Vec::new()
}

/// The answer was to repair.
pub fn repair(model: &mut Model) -> Vec<Effect> {
    if !need_link(model) || model.runs(Job::Repair) {
        return Vec::new();
    }
    model.jobs.push(Job::Repair);
    vec![Effect::Repair(model.verify.wrong.clone())]
}

/// A repair ended. Whether all is right now is for the next verify to say, so the list and the numbers start anew.
pub fn repaired(model: &mut Model, result: Result<u64, String>) -> Vec<Effect> {
    end(model, Job::Repair);
    match result {
        Ok(count) => {
            let clock = model.clock;
            model.verify.begin(clock);
            model.say(Level::Ok, format!("repaired {}; r verifies again", crate::text::counted(count, "object")));
        }
        Err(why) => model.say(Level::Error, format!("not repaired: {why}")),
    }
    Vec::new()
}

/// Runs the policy's tests.
pub fn run_tests(model: &mut Model) -> Vec<Effect> {
    if !need_link(model) || model.runs(Job::Tests) {
        return Vec::new();
    }
    model.jobs.push(Job::Tests);
    model.say(Level::Info, "the tests run; each is rolled back");
    vec![Effect::RunTests { name: super::policy::file(model), text: model.policy.text() }]
}

/// The policy's tests ran.
pub fn tested(model: &mut Model, result: Result<TestRun, String>) -> Vec<Effect> {
    end(model, Job::Tests);
    match result {
        Ok(run) => {
            let (level, words) = match run.failed.first() {
                None => (
                    Level::Ok,
                    format!("{} passed", crate::text::counted(u64::try_from(run.passed).unwrap_or(u64::MAX), "test")),
                ),
                Some(first) => (
                    Level::Error,
                    format!("{} of {} tests failed: {first}", run.failed.len(), run.passed + run.failed.len()),
                ),
            };
            model.say(level, words);
            model.policy.tests = Some(run);
        }
        Err(why) => model.say(Level::Error, format!("the tests did not run: {why}")),
    }
    Vec::new()
}

fn end(model: &mut Model, job: Job) {
    model.jobs.retain(|running| *running != job);
}
