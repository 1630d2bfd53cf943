//! Steady state by rounds, and how far a rate fell.

use super::*;

const SECOND: u64 = 1_000_000_000;

#[test]
fn steady_state_follows_the_limits_of_snia() {
    let even = [100.0; 5];
    let state = steady_state(SECOND, &even, 1e6);
    assert_eq!((state.is_steady, state.reached_at), (true, Some(5)));
    assert_eq!((state.more_ns, state.more_bytes), (None, None));
    // A range of 19 % without a slope, and of 21 %.
    for (low, is_steady) in [(90.5, true), (89.4, false)] {
        let rates = [109.5, low, 100.0, low, 109.5];
        assert_eq!(steady_state(SECOND, &rates, 1e6).is_steady, is_steady);
    }
    // A line that falls by 9 % and by 11 % of its mean.
    for (step, is_steady) in [(2.25, true), (2.75, false)] {
        let mut rates = Vec::new();
        for number in 0..5 {
            rates.push(100.0 - step * f64::from(number));
        }
        let state = steady_state(SECOND, &rates, 1e6);
        assert_eq!(state.is_steady, is_steady, "{state:?}");
    }
}

#[test]
fn steady_state_says_how_much_longer() {
    let state = steady_state(60 * SECOND, &[100.0, 100.0], 1e6);
    assert_eq!(state.range, None);
    assert_eq!(state.more_ns, Some(180 * SECOND));
    assert_eq!(state.more_bytes, Some(180_000_000));
    let falling: Vec<f64> = (0..10).map(|number| 1000.0 / f64::from(1 + number)).collect();
    let state = steady_state(60 * SECOND, &falling, 1e6);
    assert_eq!((state.is_steady, state.reached_at), (false, None));
    assert_eq!(state.more_ns, Some(300 * SECOND));
}

#[test]
fn drop_share_of_few_or_noisy_rounds_decides_nothing() {
    assert_eq!(drop_share(&[100.0, 90.0], None), None);
    let noisy = drop_share(&[150.0, 60.0, 90.0, 60.0, 120.0, 50.0], None).unwrap();
    assert!(noisy.low() < 0.2 && noisy.high() > 0.2, "{noisy:?}");
    let even = drop_share(&[100.0, 101.0, 99.0, 100.0, 99.0, 101.0], None).unwrap();
    assert!(even.high() < 0.1, "{even:?}");
    let fallen = drop_share(&[100.0, 101.0, 99.0, 50.0, 49.0, 51.0], None).unwrap();
    assert!(fallen.low() > 0.4, "{fallen:?}");
}
