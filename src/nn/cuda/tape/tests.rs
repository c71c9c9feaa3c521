//! Sizes that do not fit are refused before anything is launched, and memory is given out as the arena says.

use super::*;
use crate::nn::cuda::backend::dry_run;
use candle_core::Device;

/// Runs `body` on a tape without parameters and returns the launches that the dry run writes down.
fn on_a_tape(body: impl FnOnce(&Tape<'_>) -> Result<()>) -> Result<Vec<String>> {
    let params = Params::new(&Device::Cpu);
    dry_run::launches(LaunchOptions::default(), |device| {
        let mut memory = Memory::new(device);
        body(&Tape::new(&params, &mut memory, None))
    })
}

fn refused(what: &str, body: impl FnOnce(&Tape<'_>) -> Result<()>) {
    let error = on_a_tape(body).unwrap_err().to_string();
    assert!(error.contains(what), "{error}");
}

fn weight<'a>(tape: &Tape<'a>, m: usize, k: usize) -> Result<Weight<'a>> {
    Ok(Weight { at: tape.room(m * k)?, ld: k, m, k, transposed: false })
}

#[test]
fn operands_that_fit_are_launched() {
    let launches = on_a_tape(|tape| {
        let (x, y) = (tape.constant(4, 8)?, tape.constant(4, 6)?);
        tape.linear(x, weight(tape, 6, 8)?, y, true)?;
        tape.tanh(y)?;
        tape.gate(y, x.cols(0, 3), x.cols(3, 3)).unwrap_err();
        tape.repeat(y, tape.constant(12, 6)?)
    });
    let launches = launches.unwrap();
    let names: Vec<_> = launches.iter().map(|launch| launch.split(' ').next().unwrap()).collect();
    assert_eq!(names, ["small_gemm", "act_fwd", "repeat_fwd"]);
}

#[test]
fn operands_of_other_sizes_are_refused() {
    refused("the input of a linear layer", |tape| {
        tape.linear(tape.constant(4, 7)?, weight(tape, 6, 8)?, tape.constant(4, 6)?, true)
    });
    refused("the result of a linear layer", |tape| {
        tape.linear(tape.constant(4, 8)?, weight(tape, 6, 8)?, tape.constant(4, 5)?, true)
    });
    refused("the second factor of a product", |tape| {
        let short = Weight { at: tape.room(47)?, ..weight(tape, 6, 8)? };
        tape.linear(tape.constant(4, 8)?, short, tape.constant(4, 6)?, true)
    });
    refused("a bias", |tape| tape.bias_init(tape.constant(4, 6)?, tape.room(5)?, None));
    refused("rows to begin with", |tape| tape.copy(tape.room(23)?, 6, tape.constant(4, 6)?));
    refused("rows of 6 numbers lie 8 apart", |tape| tape.tanh(tape.constant(4, 8)?.cols(0, 6)));
    refused("the numbers of rows of means", |tape| {
        let counts = tape.room(1)?.bits();
        tape.mean(tape.constant(8, 6)?, counts, tape.constant(2, 6)?)
    });
    refused("what is", |tape| tape.repeat(tape.constant(4, 8)?.cols(0, 6), tape.constant(8, 6)?));
    refused("a matrix of 2 x 3 in a device slice of 7", |tape| Var::dense(tape.room(7)?, 2, 3).map(drop));
}

#[test]
fn what_is_not_learnt_has_no_gradient() {
    on_a_tape(|tape| {
        let x = tape.var(4, 6)?;
        assert!(x.gradient().is_err() && x.rows(1, 2).d.is_none());
        assert!(tape.kept(3)?.1.is_none());
        Ok(())
    })
    .unwrap();
}

#[test]
#[should_panic(expected = "2 rows from 3 on in a matrix of 4")]
fn rows_beyond_the_last_are_refused() {
    let _ = on_a_tape(|tape| {
        tape.constant(4, 6)?.rows(3, 2);
        Ok(())
    });
}

#[test]
#[should_panic(expected = "3 columns from 4 on in a matrix of 6")]
fn columns_beyond_the_last_are_refused() {
    let _ = on_a_tape(|tape| {
        tape.constant(4, 6)?.cols(4, 3);
        Ok(())
    });
}
