//! The corpus of hostile and odd inputs, replayed.

use std::fs;
use std::path::Path;

use quipu_events::Database;

mod targets;

#[test]
fn everything_in_the_corpus_holds() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let database = Database::embedded();
    for target in &targets::TARGETS {
        let mut inputs = 0;
        for input in fs::read_dir(corpus.join(target.name)).unwrap() {
            let path = input.unwrap().path();
            let bytes = fs::read(&path).unwrap();
            // The harness shows it when what follows panics.
            println!("{}", path.display());
            (target.run)(&database, &bytes);
            inputs += 1;
        }
        assert!(inputs >= 5, "{}: {inputs} inputs", target.name);
    }
}
