//! The target, from the options that name it.

use quipu::Target;
use quipu_shell::target::{Scope, TargetOptions};

#[test]
fn the_scope_follows_from_the_options() {
    let none = TargetOptions::default();
    assert_eq!(none.scope().expect("no mistake"), None);
    let command = TargetOptions {
        command: vec!["ls".into()],
        ..none
    };
    let scope_of = |options: &TargetOptions| options.scope().expect("no mistake");
    assert_eq!(scope_of(&command), Some(Scope::Command));
    let tasks = TargetOptions {
        pid: vec![1],
        tid: vec![2],
        ..command.clone()
    };
    let both = vec![Target::Process(1), Target::Thread(2)];
    assert_eq!(scope_of(&tasks), Some(Scope::Tasks(both)));
    let no_process = TargetOptions {
        pid: vec![0],
        ..command.clone()
    };
    assert!(no_process.scope().is_err());
    let cpus = TargetOptions {
        cpus: Some("0-1".into()),
        ..command
    };
    let both = Target::Cpus(vec![0, 1]);
    assert_eq!(scope_of(&cpus), Some(Scope::Cpus(both)));
}
