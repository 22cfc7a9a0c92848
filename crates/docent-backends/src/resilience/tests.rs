use std::cell::Cell;
use std::rc::Rc;

use proptest::prelude::*;
use tokio::time::advance;

use super::*;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Trouble {
    Passing,
    Busy(u64),
    Lasting,
    Open,
    TimedOut,
}

impl Transient for Trouble {
    fn is_transient(&self) -> bool {
        *self != Self::Lasting
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

/// Calls with the outcomes of `script`, the last one repeated; the result and how many were used.
async fn play(
    policy: &Policy,
    breaker: &Breaker,
    deadline: Option<Instant>,
    script: &[Result<u8, Trouble>],
) -> (Result<u8, Trouble>, usize) {
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
        let (result, calls) = play(&once(), breaker, None, &[Err(Trouble::Passing)]).await;
        assert_eq!((result, calls), (Err(Trouble::Passing), 1));
    }
}

#[tokio::test(start_paused = true)]
async fn three_attempts_and_no_more() {
    let (result, calls) = play(&Policy::default(), &breaker(), None, &[Err(Trouble::Passing)]).await;
    assert_eq!((result, calls), (Err(Trouble::Passing), 3));
}

#[tokio::test(start_paused = true)]
async fn the_first_success_ends_the_trying() {
    let script = [Err(Trouble::Passing), Ok(7), Ok(8)];
    assert_eq!(play(&Policy::default(), &breaker(), None, &script).await, (Ok(7), 2));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_pass_is_not_tried_again_and_opens_nothing() {
    let breaker = breaker();
    for _ in 0..10 {
        let outcome = play(&Policy::default(), &breaker, None, &[Err(Trouble::Lasting)]).await;
        assert_eq!(outcome, (Err(Trouble::Lasting), 1));
    }
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn the_fifth_failure_in_a_row_opens_the_circuit() {
    let breaker = breaker();
    fail(&breaker, 4).await;
    assert_eq!(breaker.state(), BreakerState::Closed);
    fail(&breaker, 1).await;
    assert_eq!(breaker.state(), BreakerState::Open);
    assert_eq!(play(&once(), &breaker, None, &[Ok(1)]).await, (Err(Trouble::Open), 0));
}

#[tokio::test(start_paused = true)]
async fn a_success_starts_the_count_anew() {
    let breaker = breaker();
    fail(&breaker, 4).await;
    assert_eq!(play(&once(), &breaker, None, &[Ok(1)]).await, (Ok(1), 1));
    fail(&breaker, 4).await;
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_circuit_that_opens_ends_the_trying() {
    let breaker = breaker();
    fail(&breaker, 4).await;
    let started = Instant::now();
    let outcome = play(&Policy::default(), &breaker, None, &[Err(Trouble::Passing)]).await;
    assert_eq!(outcome, (Err(Trouble::Passing), 1));
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn half_a_minute_later_one_call_decides() {
    let breaker = breaker();
    fail(&breaker, 5).await;
    advance(Duration::from_millis(29_999)).await;
    assert_eq!(breaker.state(), BreakerState::Open);
    advance(Duration::from_millis(1)).await;
    assert_eq!(breaker.state(), BreakerState::HalfOpen);

    let outcome = play(&Policy::default(), &breaker, None, &[Err(Trouble::Passing)]).await;
    assert_eq!(outcome, (Err(Trouble::Passing), 1));
    assert_eq!(breaker.state(), BreakerState::Open);

    advance(Duration::from_secs(30)).await;
    assert_eq!(play(&once(), &breaker, None, &[Ok(1)]).await, (Ok(1), 1));
    assert_eq!(breaker.state(), BreakerState::Closed);
    fail(&breaker, 4).await;
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn of_many_callers_one_makes_the_trial() {
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
                    Ok::<_, Trouble>(())
                }
            })
            .await
        }
    };
    let results = futures_util::future::join_all((0..10).map(|_| caller())).await;
    assert_eq!(calls.get(), 1);
    assert_eq!(results.iter().filter(|result| **result == Err(Trouble::Open)).count(), 9);
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_trial_whose_caller_left_makes_room_for_the_next() {
    let breaker = breaker();
    fail(&breaker, 5).await;
    advance(Duration::from_secs(30)).await;
    let permit = breaker.acquire().unwrap();
    assert!(breaker.acquire().is_none());
    drop(permit);
    assert!(breaker.acquire().is_some());
}

#[tokio::test(start_paused = true)]
async fn after_the_trial_began_well_others_pass_but_its_end_decides() {
    let breaker = breaker();
    fail(&breaker, 5).await;
    advance(Duration::from_secs(30)).await;
    let began = begin(&once(), &breaker, None, || async { Ok::<_, Trouble>(()) }).await;
    let (_, permit) = began.unwrap();
    assert_eq!(breaker.state(), BreakerState::Closed);
    permit.failed();
    assert_eq!(breaker.state(), BreakerState::Open);
}

#[tokio::test(start_paused = true)]
async fn what_begins_well_and_breaks_off_opens_the_circuit_too() {
    let breaker = breaker();
    for _ in 0..5 {
        let began = begin(&once(), &breaker, None, || async { Ok::<_, Trouble>(()) }).await;
        began.unwrap().1.failed();
    }
    assert_eq!(breaker.state(), BreakerState::Open);
}

#[test]
fn a_wait_is_at_most_the_first_doubled_each_time_up_to_the_limit() {
    let policy = Policy::default();
    for (attempt, most) in [(1, 200), (2, 400), (3, 800), (5, 3200), (6, 5000), (10, 5000)] {
        let longest = (0..200).map(|_| policy.delay(attempt)).max().unwrap();
        assert!(longest <= Duration::from_millis(most), "{attempt}: {longest:?}");
        // Chance shortens a wait; of so many one is nearly whole.
        assert!(longest > Duration::from_millis(most / 2), "{attempt}: {longest:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_wait_is_as_long_as_the_service_asks() {
    let started = Instant::now();
    let script = [Err(Trouble::Busy(7000)), Ok(1)];
    assert_eq!(play(&Policy::default(), &breaker(), None, &script).await, (Ok(1), 2));
    assert_eq!(started.elapsed(), Duration::from_secs(7));
}

#[tokio::test(start_paused = true)]
async fn a_wait_past_the_deadline_is_not_begun() {
    let started = Instant::now();
    let deadline = Some(started + Duration::from_secs(10));
    let script = [Err(Trouble::Busy(11_000)), Ok(1)];
    let outcome = play(&Policy::default(), &breaker(), deadline, &script).await;
    assert_eq!(outcome, (Err(Trouble::Busy(11_000)), 1));
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_hangs_is_given_up() {
    let policy = Policy { attempts: 2, attempt_timeout: Duration::from_secs(1), ..Policy::default() };
    let started = Instant::now();
    let result = call(&policy, &breaker(), None, std::future::pending::<Result<(), Trouble>>).await;
    assert_eq!(result, Err(Trouble::TimedOut));
    assert!((2000..=2200).contains(&started.elapsed().as_millis()));
}

fn outcome() -> impl Strategy<Value = Result<u8, Trouble>> {
    prop_oneof![
        1 => Just(Ok(1)),
        4 => Just(Err(Trouble::Passing)),
        2 => (0u64..20_000).prop_map(|millis| Err(Trouble::Busy(millis))),
        1 => Just(Err(Trouble::Lasting)),
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
