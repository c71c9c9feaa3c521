//! The named parameters of one model: made once, updated in place, copied out whole.

use crate::protocol::Parameters;
use candle_core::{DType, Device, Result, Tensor, Var, bail};
use std::collections::BTreeMap;

/// Ordered named parameters (float32) of one model on one device.
#[derive(Clone, Debug)]
pub struct Params {
    vars: Vec<(String, Var)>,
    device: Device,
}

impl Params {
    /// An empty set on `device`.
    pub fn new(device: &Device) -> Self {
        Self { vars: Vec::new(), device: device.clone() }
    }

    /// Adds a parameter with its initial value and returns it. Names must be new.
    pub fn add(&mut self, name: &str, initial: &Tensor) -> Result<()> {
        if self.vars.iter().any(|(n, _)| n == name) {
            bail!("parameter `{name}` exists already")
        }
        let value = initial.to_dtype(DType::F32)?.to_device(&self.device)?.copy()?;
        self.vars.push((name.to_owned(), Var::from_tensor(&value)?));
        Ok(())
    }

    /// The parameter called `name`.
    pub fn get(&self, name: &str) -> Result<&Var> {
        match self.vars.iter().find(|(n, _)| n == name) {
            Some((_, var)) => Ok(var),
            None => bail!("no parameter `{name}`"),
        }
    }

    /// All parameters in order of creation.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Var)> {
        self.vars.iter().map(|(n, v)| (n.as_str(), v))
    }

    /// Number of parameters (tensors).
    pub fn len(&self) -> usize {
        self.vars.len()
    }

    /// True without parameters.
    pub fn is_empty(&self) -> bool {
        self.vars.is_empty()
    }

    /// Number of weights (scalars).
    pub fn elements(&self) -> usize {
        self.vars.iter().map(|(_, v)| v.elem_count()).sum()
    }

    /// The device they are on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// A deep copy on the CPU, by name.
    pub fn snapshot(&self) -> Result<BTreeMap<String, Tensor>> {
        self.iter().map(|(n, v)| Ok((n.to_owned(), v.as_detached_tensor().to_device(&Device::Cpu)?.copy()?))).collect()
    }

    /// Overwrites every parameter. Names and shapes must match exactly; nothing is changed when they do not.
    pub fn load(&self, values: &BTreeMap<String, Tensor>) -> Result<()> {
        for (name, var) in self.iter() {
            match values.get(name) {
                None => bail!("the file lacks the weight `{name}`"),
                Some(t) if t.dims() != var.dims() => {
                    bail!("the weight `{name}` has shape {:?} in the file and {:?} in the model", t.dims(), var.dims())
                }
                Some(_) => {}
            }
        }
        if let Some(extra) = values.keys().find(|k| !self.vars.iter().any(|(n, _)| n == *k)) {
            bail!("the file has a weight `{extra}` that the model lacks")
        }
        for (name, var) in self.iter() {
            var.set(&values[name].to_dtype(DType::F32)?.to_device(&self.device)?)?;
        }
        Ok(())
    }

    /// Copies a row of a matrix over another row of it, in place.
    pub fn copy_row(&self, name: &str, from: usize, to: usize) -> Result<()> {
        let var = self.get(name)?;
        let mut rows = var.as_detached_tensor().to_device(&Device::Cpu)?.to_vec2::<f32>()?;
        if from >= rows.len() || to >= rows.len() {
            bail!("parameter `{name}` has {} rows", rows.len())
        }
        rows[to] = rows[from].clone();
        let flat = rows.concat();
        var.set(&Tensor::from_vec(flat, var.dims(), &Device::Cpu)?.to_device(&self.device)?)
    }
}

impl Parameters for Params {
    fn device(&self) -> &Device {
        &self.device
    }

    fn tensor(&self, name: &str) -> Result<Tensor> {
        Ok(self.get(name)?.as_detached_tensor())
    }

    fn snapshot(&self) -> Result<BTreeMap<String, Tensor>> {
        Params::snapshot(self)
    }

    fn load(&self, values: &BTreeMap<String, Tensor>) -> Result<()> {
        Params::load(self, values)
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }

    fn move_towards(&self, other: &dyn Parameters, decay: f64) -> Result<()> {
        if self.device.is_cuda() {
            let others = self.iter().map(|(name, _)| other.tensor(name)).collect::<Result<Vec<_>>>()?;
            let pairs: Vec<_> = self.iter().zip(&others).map(|((_, var), other)| (var.as_tensor(), other)).collect();
            return crate::nn::cuda::adam::average(&pairs, decay as f32);
        }
        for (name, var) in self.iter() {
            let kept = (var.as_detached_tensor() * decay)?;
            var.set(&(kept + (other.tensor(name)? * (1.0 - decay))?)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_refuses_what_does_not_fit_and_changes_nothing() {
        let mut p = Params::new(&Device::Cpu);
        p.add("a", &Tensor::new(&[1f32, 2.], &Device::Cpu).unwrap()).unwrap();
        p.add("b", &Tensor::new(&[3f32], &Device::Cpu).unwrap()).unwrap();
        assert!(p.add("a", &Tensor::new(&[1f32], &Device::Cpu).unwrap()).is_err());
        let mut map = p.snapshot().unwrap();
        map.insert("a".into(), Tensor::new(&[9f32, 9.], &Device::Cpu).unwrap());
        map.insert("b".into(), Tensor::new(&[9f32, 9.], &Device::Cpu).unwrap());
        assert!(p.load(&map).unwrap_err().to_string().contains("`b`"));
        assert_eq!(p.get("a").unwrap().to_vec1::<f32>().unwrap(), [1., 2.]);
        map.insert("b".into(), Tensor::new(&[9f32], &Device::Cpu).unwrap());
        p.load(&map).unwrap();
        assert_eq!(p.get("a").unwrap().to_vec1::<f32>().unwrap(), [9., 9.]);
        map.insert("c".into(), Tensor::new(&[9f32], &Device::Cpu).unwrap());
        assert!(p.load(&map).is_err());
    }

    #[test]
    fn a_snapshot_does_not_follow_later_changes() {
        let mut p = Params::new(&Device::Cpu);
        p.add("a", &Tensor::new(&[1f32], &Device::Cpu).unwrap()).unwrap();
        let kept = p.snapshot().unwrap();
        p.get("a").unwrap().set(&Tensor::new(&[5f32], &Device::Cpu).unwrap()).unwrap();
        assert_eq!(kept["a"].to_vec1::<f32>().unwrap(), [1.]);
    }

    #[test]
    fn values_move_by_what_the_decay_leaves() {
        let of = |v: f32| {
            let mut p = Params::new(&Device::Cpu);
            p.add("a", &Tensor::new(&[v], &Device::Cpu).unwrap()).unwrap();
            p
        };
        let (average, now) = (of(1.0), of(5.0));
        average.move_towards(&now, 0.75).unwrap();
        assert_eq!(average.get("a").unwrap().to_vec1::<f32>().unwrap(), [2.0]);
        assert_eq!(now.get("a").unwrap().to_vec1::<f32>().unwrap(), [5.0]);
    }
}
