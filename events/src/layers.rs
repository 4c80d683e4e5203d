//! The layers of a database: the embedded tables, and those of files on top of them.

use std::path::PathBuf;
use std::sync::Arc;

use quipu_events_format::packed::{CpuView, Table};

/// One layer: its table and its origin.
#[derive(Debug, Clone)]
pub(crate) struct Layer {
    pub(crate) table: Table,
    pub(crate) origin: LayerFile,
    /// The backends that the file consents to.
    pub(crate) allowed: Vec<String>,
}

/// The origin of a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LayerFile {
    /// The database in the program itself.
    Embedded,
    /// A file.
    File(PathBuf),
}

/// All layers, from the bottom up. Cloning is cheap.
#[derive(Debug, Clone)]
pub(crate) struct Layers(Arc<Vec<Layer>>);

impl Layers {
    /// Makes the layers of one table.
    pub(crate) fn of(layer: Layer) -> Self {
        Self(Arc::new(vec![layer]))
    }

    /// Returns them with another on top.
    #[cfg(feature = "files")]
    pub(crate) fn with(&self, layer: Layer) -> Self {
        let mut layers = (*self.0).clone();
        layers.push(layer);
        Self(Arc::new(layers))
    }

    /// Returns a layer by its number, from the bottom.
    pub(crate) fn get(&self, number: usize) -> Option<&Layer> {
        self.0.get(number)
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Layer> {
        self.0.iter()
    }

    /// Returns the views of a CPU entry, the top layer first.
    pub(crate) fn views<'d>(&'d self, id: &'d str) -> impl Iterator<Item = (usize, CpuView<'d>)> {
        self.0
            .iter()
            .enumerate()
            .rev()
            .filter_map(move |(at, layer)| {
                let view = layer.table.cpus().find(|cpu| cpu.id() == id)?;
                Some((at, view))
            })
    }
}
