//! The threads that run models, one per core, and their queue.
//!
//! A user waits for the vector of a question, then for the passages that the reader scores for it, while an
//! ingest can wait. So questions are run first, then passages for a question, then the rest.
//!
//! Invariant: every queued task is run, tasks of the same urgency start in order, and a panic in a model
//! affects no other task. The queue for tasks that users wait for is bounded; further tasks are rejected.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};

use rten::ThreadPool;

/// A task for a worker, which runs models in its own thread pool.
pub(crate) type Task<T> = Box<dyn FnOnce(&Arc<ThreadPool>) -> Result<T, String> + Send>;

/// The priority of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// A user waits for the vector of a question, or of a sentence that is checked.
    Question,
    /// A user waits for passages to be read together with a question.
    Reading,
    /// No user is waiting.
    Passage,
}

/// Maximum number of waiting tasks per worker, for tasks that users wait for. A question takes some
/// milliseconds, so the last one waits about a second.
const MOST_WAITING: usize = 128;

/// Why tasks were not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Undone {
    /// Too many tasks are waiting; none of these was started.
    Busy,
    /// The model failed.
    Failed(String),
}

impl std::fmt::Display for Undone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Busy => f.write_str("too many tasks are waiting for the model"),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

type Job = Box<dyn FnOnce(&Arc<ThreadPool>) + Send>;

#[derive(Default)]
struct Queue {
    questions: VecDeque<Job>,
    readings: VecDeque<Job>,
    passages: VecDeque<Job>,
    closed: bool,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    filled: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next task; `None` when the workers are dropped.
    fn next(&self) -> Option<Job> {
        let mut queue = self.lock();
        loop {
            let Queue { questions, readings, passages, .. } = &mut *queue;
            let job = questions.pop_front().or_else(|| readings.pop_front()).or_else(|| passages.pop_front());
            if job.is_some() {
                return job;
            }
            if queue.closed {
                return None;
            }
            queue = self.filled.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Runs tasks in a pool with a single thread: workers with a shared pool would wait for each other.
    fn work(&self) {
        let pool = Arc::new(ThreadPool::with_num_threads(1));
        while let Some(job) = self.next() {
            // The caller notices a panic by the missing answer.
            let _ = catch_unwind(AssertUnwindSafe(|| job(&pool)));
        }
    }
}

/// A set of worker threads; they end when this is dropped.
pub(crate) struct Workers {
    shared: Arc<Shared>,
    count: usize,
}

impl Workers {
    /// The workers of this process, one per core, shared by all models.
    pub(crate) fn shared() -> &'static Self {
        static WORKERS: LazyLock<Workers> =
            LazyLock::new(|| Workers::start(std::thread::available_parallelism().map_or(1, usize::from)));
        &WORKERS
    }

    fn start(count: usize) -> Self {
        let shared = Arc::<Shared>::default();
        let mut started = 0;
        for _ in 0..count {
            let own = shared.clone();
            let thread = std::thread::Builder::new().name("model".to_owned()).spawn(move || own.work());
            started += usize::from(thread.is_ok());
        }
        Self { shared, count: started }
    }

    /// How many passages are waiting to be read, per worker.
    pub(crate) fn readings_per_worker(&self) -> usize {
        self.shared.lock().readings.len() / self.count.max(1)
    }

    /// Number of workers.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Runs all tasks and returns their results in order; blocks the calling thread.
    pub(crate) fn run_now<T: Send + 'static>(
        &self,
        urgency: Urgency,
        tasks: Vec<Task<T>>,
    ) -> Result<Vec<T>, Undone> {
        let expected = tasks.len();
        let (tell, told) = std::sync::mpsc::channel();
        self.queue(urgency, tasks, move |answer| {
            let _ = tell.send(answer);
        })?;
        in_order(expected, told.iter().collect())
    }

    /// Like [`Self::run_now`], but asynchronous.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        urgency: Urgency,
        tasks: Vec<Task<T>>,
    ) -> Result<Vec<T>, Undone> {
        let expected = tasks.len();
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        self.queue(urgency, tasks, move |answer| {
            let _ = tell.send(answer);
        })?;
        let mut answers = Vec::with_capacity(expected);
        while let Some(answer) = told.recv().await {
            answers.push(answer);
        }
        in_order(expected, answers)
    }

    fn queue<T: 'static>(
        &self,
        urgency: Urgency,
        tasks: Vec<Task<T>>,
        tell: impl Fn((usize, Result<T, String>)) + Clone + Send + 'static,
    ) -> Result<(), Undone> {
        let jobs = tasks.into_iter().enumerate().map(|(number, task)| {
            let tell = tell.clone();
            Box::new(move |pool: &Arc<ThreadPool>| tell((number, task(pool)))) as Job
        });
        let mut queue = self.shared.lock();
        let most = MOST_WAITING * self.count.max(1);
        let waiting = match urgency {
            Urgency::Question => &mut queue.questions,
            Urgency::Reading => &mut queue.readings,
            // Not bounded: the caller decides how much to queue.
            Urgency::Passage => &mut queue.passages,
        };
        if urgency != Urgency::Passage && waiting.len() >= most {
            return Err(Undone::Busy);
        }
        waiting.extend(jobs);
        drop(queue);
        self.shared.filled.notify_all();
        Ok(())
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.filled.notify_all();
    }
}

fn in_order<T>(expected: usize, mut answers: Vec<(usize, Result<T, String>)>) -> Result<Vec<T>, Undone> {
    answers.sort_by_key(|(number, _)| *number);
    let done = answers.into_iter().map(|(_, answer)| answer).collect::<Result<Vec<T>, String>>();
    let done = done.map_err(Undone::Failed)?;
    if done.len() == expected {
        Ok(done)
    } else {
        Err(Undone::Failed("the model failed on a text".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn tasks(numbers: std::ops::Range<u32>) -> Vec<Task<u32>> {
        numbers.map(|number| Box::new(move |_: &Arc<ThreadPool>| Ok(number)) as Task<u32>).collect()
    }

    #[tokio::test]
    async fn results_are_in_the_order_of_the_tasks() {
        let workers = Workers::start(3);
        let expected: Vec<u32> = (0..50).collect();
        assert_eq!(workers.run_now(Urgency::Passage, tasks(0..50)).unwrap(), expected);
        assert_eq!(workers.run(Urgency::Question, tasks(0..50)).await.unwrap(), expected);
        assert!(workers.run(Urgency::Question, tasks(0..0)).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_panic_is_an_error_and_the_worker_survives() {
        let workers = Workers::start(1);
        let panics: Task<u32> = Box::new(|_| panic!("as a model might"));
        assert!(workers.run(Urgency::Question, vec![panics]).await.is_err());
        assert_eq!(workers.run(Urgency::Question, tasks(7..8)).await.unwrap(), [7]);
    }

    #[test]
    fn a_question_overtakes_waiting_passages() {
        let workers = Workers::start(1);
        let (busy, is_busy) = mpsc::channel();
        let (begin, begun) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let named = |name: &'static str| {
            let tell = tell.clone();
            Box::new(move |_: &Arc<ThreadPool>| {
                let _ = tell.send(name);
                Ok(())
            }) as Task<()>
        };
        let first = Box::new(move |_: &Arc<ThreadPool>| {
            let _ = busy.send(());
            let _ = begun.recv();
            Ok(())
        });
        workers.queue(Urgency::Passage, vec![first], |_| ()).unwrap();
        is_busy.recv().unwrap();
        workers.queue(Urgency::Passage, vec![named("third"), named("fourth")], |_| ()).unwrap();
        workers.queue(Urgency::Reading, vec![named("reading"), named("reading too")], |_| ()).unwrap();
        assert_eq!(workers.readings_per_worker(), 2);
        workers.queue(Urgency::Question, vec![named("question")], |_| ()).unwrap();
        begin.send(()).unwrap();
        drop(tell);
        drop(workers);
        let expected = ["question", "reading", "reading too", "third", "fourth"];
        assert_eq!(told.iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_question_is_rejected_when_too_many_are_waiting() {
        let workers = Workers::start(1);
        let (busy, is_busy) = mpsc::channel();
        let (begin, begun) = mpsc::channel::<()>();
        let first = Box::new(move |_: &Arc<ThreadPool>| {
            let _ = busy.send(());
            let _ = begun.recv();
            Ok(0_u32)
        });
        workers.queue(Urgency::Question, vec![first as Task<u32>], |_| ()).unwrap();
        is_busy.recv().unwrap();
        for _ in 0..MOST_WAITING {
            workers.queue(Urgency::Question, tasks(0..1), |_| ()).unwrap();
        }
        assert_eq!(workers.run_now(Urgency::Question, tasks(0..1)), Err(Undone::Busy));
        // Tasks of other urgencies are not rejected.
        workers.queue(Urgency::Passage, tasks(0..1000), |_| ()).unwrap();
        workers.queue(Urgency::Reading, tasks(0..1), |_| ()).unwrap();
        begin.send(()).unwrap();
        assert_eq!(workers.run_now(Urgency::Passage, tasks(7..8)), Ok(vec![7]));
        assert_eq!(workers.run_now(Urgency::Question, tasks(8..9)), Ok(vec![8]));
    }
}
