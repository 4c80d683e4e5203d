//! The plan: the target, and contradictions.

use quipu::Target;
use quipu_shell::target::Scope;
use quipu_stat::{Options, Plan};

fn plan(change: impl FnOnce(&mut Options)) -> Result<Plan, String> {
    let mut options = Options::default();
    change(&mut options);
    Plan::new(&options).map_err(|failure| failure.to_string())
}

#[test]
fn a_command_is_the_target_unless_another_is_named() {
    let alone = plan(|o| o.target.command = vec!["ls".into()]).expect("fine");
    assert_eq!(alone.scope, Scope::Command);
    assert!(alone.starts_on_exec() && alone.inherits());
    assert_eq!(alone.title(), "'ls'");
    let beside = plan(|o| {
        o.target.command = vec!["sleep".into(), "1".into()];
        o.target.cpus = Some("2,0-1".into());
    })
    .expect("fine");
    assert_eq!(beside.scope, Scope::Cpus(Target::Cpus(vec![0, 1, 2])));
    assert!(!beside.starts_on_exec() && !beside.inherits());
    assert_eq!(beside.title(), "CPUs 0,1,2");
    assert_eq!(beside.command_cpus(), None);
    let registers = plan(|o| {
        o.target.command = vec!["ls".into()];
        o.target.cpus = Some("1,3".into());
        o.backend = vec!["msr".into()];
    })
    .expect("fine");
    assert_eq!(registers.command_cpus(), Some(&[1, 3][..]));
    assert_eq!(
        registers.title(),
        "everything on CPUs 1,3, by raw registers"
    );
}

#[test]
fn contradictions_are_refused_with_what_to_do() {
    for (change, word) in [
        ((|_| {}) as fn(&mut Options), "quipu stat -- ls"),
        (|o| o.target.cpus = Some(String::new()), "0-3,8"),
        (|o| o.target.cpus = Some("x".into()), "0-3,8"),
        (|o| o.target.pid = vec![0], "0 is not a process"),
        (
            |o| {
                o.target.command = vec!["ls".into()];
                o.places.no_aggr = true;
            },
            "add -a",
        ),
        (
            |o| {
                o.target.command = vec!["ls".into()];
                o.places.per_thread = true;
            },
            "add -p",
        ),
        (
            |o| {
                o.target.all_cpus = true;
                o.repeat = Some(2);
            },
            "needs a command",
        ),
        (
            |o| {
                o.target.command = vec!["ls".into()];
                o.backend = vec!["msr".into()];
            },
            "add -C LIST",
        ),
        (
            |o| {
                o.target.all_cpus = true;
                o.take_busy = true;
            },
            "needs --backend msr",
        ),
    ] {
        let message = plan(change).expect_err(word);
        assert!(message.contains(word), "{message}");
    }
}
