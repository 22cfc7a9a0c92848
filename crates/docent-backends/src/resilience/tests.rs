use std::cell::Cell;
use std::rc::Rc;

use proptest::prelude::*;
use tokio::time::advance;

use super::*;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Failure {
    Transient,
    Busy(u64),
    Permanent,
    Open,
    TimedOut,
}

impl Transient for Failure {
    fn is_transient(&self) -> bool {
        *self != Self::Permanent
    }

    fn retry_after(&self) -> Option<Duration> {
        if let Self::Busy(millis) = self { Some(Duration::from_millis(*millis)) } else { None }
    }

    fn open_circuit() -> Self {
        Self::Open
    }

    fn timed_out() -> Self {
        Self::TimedOut
    }
}

fn breaker() -> Breaker {
    Breaker::new("test")
}

fn once() -> Policy {
    Policy { attempts: 1, ..Policy::default() }
}

/// Makes a call whose attempts have the outcomes in `script` (the last one repeats); returns the result and
/// the number of attempts.
async fn play(
    policy: &Policy,
    breaker: &Breaker,
    deadline: Option<Instant>,
    script: &[Result<u8, Failure>],
) -> (Result<u8, Failure>, usize) {
    let calls = Cell::new(0);
    let result = call(policy, breaker, deadline, || {
        let outcome = script[calls.get().min(script.len() - 1)];
        calls.set(calls.get() + 1);
        async move { outcome }
    })
    .await;
    (result, calls.get())
}

async fn fail(breaker: &Breaker, times: u32) {
    for _ in 0..times {
        let (result, calls) = play(&once(), breaker, None, &[Err(Failure::Transient)]).await;
        assert_eq!((result, calls), (Err(Failure::Transient), 1));
    }
}

#[tokio::test(start_paused = true)]
async fn there_are_at_most_three_attempts() {
    let (result, calls) = play(&Policy::default(), &breaker(), None, &[Err(Failure::Transient)]).await;
    assert_eq!((result, calls), (Err(Failure::Transient), 3));
}

#[tokio::test(start_paused = true)]
async fn the_first_success_is_returned() {
    let script = [Err(Failure::Transient), Ok(7), Ok(8)];
    assert_eq!(play(&Policy::default(), &breaker(), None, &script).await, (Ok(7), 2));
}

#[tokio::test(start_paused = true)]
async fn permanent_failures_are_not_retried_and_do_not_open_the_circuit() {
    let breaker = breaker();
    for _ in 0..10 {
        let outcome = play(&Policy::default(), &breaker, None, &[Err(Failure::Permanent)]).await;
        assert_eq!(outcome, (Err(Failure::Permanent), 1));
    }
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn the_fifth_consecutive_failure_opens_the_circuit() {
    let breaker = breaker();
    fail(&breaker, 4).await;
    assert_eq!(breaker.state(), BreakerState::Closed);
    fail(&breaker, 1).await;
    assert_eq!(breaker.state(), BreakerState::Open);
    assert_eq!(play(&once(), &breaker, None, &[Ok(1)]).await, (Err(Failure::Open), 0));
}

#[tokio::test(start_paused = true)]
async fn a_success_resets_the_failure_count() {
    let breaker = breaker();
    fail(&breaker, 4).await;
    assert_eq!(play(&once(), &breaker, None, &[Ok(1)]).await, (Ok(1), 1));
    fail(&breaker, 4).await;
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn there_are_no_retries_after_the_circuit_opens() {
    let breaker = breaker();
    fail(&breaker, 4).await;
    let started = Instant::now();
    let outcome = play(&Policy::default(), &breaker, None, &[Err(Failure::Transient)]).await;
    assert_eq!(outcome, (Err(Failure::Transient), 1));
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn after_half_a_minute_one_trial_call_decides() {
    let breaker = breaker();
    fail(&breaker, 5).await;
    advance(Duration::from_millis(29_999)).await;
    assert_eq!(breaker.state(), BreakerState::Open);
    advance(Duration::from_millis(1)).await;
    assert_eq!(breaker.state(), BreakerState::HalfOpen);

    let outcome = play(&Policy::default(), &breaker, None, &[Err(Failure::Transient)]).await;
    assert_eq!(outcome, (Err(Failure::Transient), 1));
    assert_eq!(breaker.state(), BreakerState::Open);

    advance(Duration::from_secs(30)).await;
    assert_eq!(play(&once(), &breaker, None, &[Ok(1)]).await, (Ok(1), 1));
    assert_eq!(breaker.state(), BreakerState::Closed);
    fail(&breaker, 4).await;
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn only_one_of_many_callers_makes_the_trial_call() {
    let breaker = breaker();
    fail(&breaker, 5).await;
    advance(Duration::from_secs(30)).await;
    let calls = Rc::new(Cell::new(0));
    let caller = || {
        let (calls, breaker) = (calls.clone(), breaker.clone());
        async move {
            call(&once(), &breaker, None, || {
                calls.set(calls.get() + 1);
                async {
                    sleep(Duration::from_secs(1)).await;
                    Ok::<_, Failure>(())
                }
            })
            .await
        }
    };
    let results = futures_util::future::join_all((0..10).map(|_| caller())).await;
    assert_eq!(calls.get(), 1);
    assert_eq!(results.iter().filter(|result| **result == Err(Failure::Open)).count(), 9);
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_trial_call_allows_another() {
    let breaker = breaker();
    fail(&breaker, 5).await;
    advance(Duration::from_secs(30)).await;
    let permit = breaker.acquire().unwrap();
    assert!(breaker.acquire().is_none());
    drop(permit);
    assert!(breaker.acquire().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_trial_that_starts_well_closes_the_circuit_until_it_fails() {
    let breaker = breaker();
    fail(&breaker, 5).await;
    advance(Duration::from_secs(30)).await;
    let began = begin(&once(), &breaker, None, || async { Ok::<_, Failure>(()) }).await;
    let (_, permit) = began.unwrap();
    assert_eq!(breaker.state(), BreakerState::Closed);
    permit.failed();
    assert_eq!(breaker.state(), BreakerState::Open);
}

#[tokio::test(start_paused = true)]
async fn streams_that_break_off_open_the_circuit() {
    let breaker = breaker();
    for _ in 0..5 {
        let began = begin(&once(), &breaker, None, || async { Ok::<_, Failure>(()) }).await;
        began.unwrap().1.failed();
    }
    assert_eq!(breaker.state(), BreakerState::Open);
}

#[test]
fn delays_double_up_to_the_maximum() {
    let policy = Policy::default();
    for (attempt, most) in [(1, 200), (2, 400), (3, 800), (5, 3200), (6, 5000), (10, 5000)] {
        let longest = (0..200).map(|_| policy.delay(attempt)).max().unwrap();
        assert!(longest <= Duration::from_millis(most), "{attempt}: {longest:?}");
        // Delays are randomly shortened; the longest of many is close to the full one.
        assert!(longest > Duration::from_millis(most / 2), "{attempt}: {longest:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_delay_requested_by_the_service_is_respected() {
    let started = Instant::now();
    let script = [Err(Failure::Busy(7000)), Ok(1)];
    assert_eq!(play(&Policy::default(), &breaker(), None, &script).await, (Ok(1), 2));
    assert_eq!(started.elapsed(), Duration::from_secs(7));
}

#[tokio::test(start_paused = true)]
async fn a_delay_past_the_deadline_fails_at_once() {
    let started = Instant::now();
    let deadline = Some(started + Duration::from_secs(10));
    let script = [Err(Failure::Busy(11_000)), Ok(1)];
    let outcome = play(&Policy::default(), &breaker(), deadline, &script).await;
    assert_eq!(outcome, (Err(Failure::Busy(11_000)), 1));
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_hanging_attempt_times_out() {
    let policy = Policy { attempts: 2, attempt_timeout: Duration::from_secs(1), ..Policy::default() };
    let started = Instant::now();
    let result = call(&policy, &breaker(), None, std::future::pending::<Result<(), Failure>>).await;
    assert_eq!(result, Err(Failure::TimedOut));
    assert!((2000..=2200).contains(&started.elapsed().as_millis()));
}

fn outcome() -> impl Strategy<Value = Result<u8, Failure>> {
    prop_oneof![
        1 => Just(Ok(1)),
        4 => Just(Err(Failure::Transient)),
        2 => (0u64..20_000).prop_map(|millis| Err(Failure::Busy(millis))),
        1 => Just(Err(Failure::Permanent)),
    ]
}

proptest! {
    #[test]
    fn neither_attempts_nor_deadline_are_exceeded(
        attempts in 0u32..20,
        deadline in 0u64..20_000,
        script in prop::collection::vec((outcome(), 0u64..3000), 1..12),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(async {
            let policy = Policy { attempts, attempt_timeout: Duration::from_secs(2), ..Policy::default() };
            let started = Instant::now();
            let allowed = Duration::from_millis(deadline);
            let calls = Cell::new(0);
            let _ = call(&policy, &breaker(), Some(started + allowed), || {
                let (outcome, millis) = script[calls.get() % script.len()];
                calls.set(calls.get() + 1);
                async move {
                    sleep(Duration::from_millis(millis)).await;
                    outcome
                }
            })
            .await;
            // The paused clock moves in whole milliseconds.
            assert!(started.elapsed() <= allowed + Duration::from_millis(1));
            assert!(calls.get() <= attempts.clamp(1, 10) as usize);
        });
    }
}
