//! The threads that run models, one a core, and the queue before them.
//!
//! A reader waits for the vector of a question, while an ingest, or the check of an answer
//! that is still being written, can wait a little. So questions go first.
//!
//! Invariant: every task that was queued is done, and a model that panics takes nothing along;
//! tasks of one urgency are begun in the order they came.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};

use rten::ThreadPool;

/// What a worker does, with the pool of its own that it runs models in.
pub(crate) type Task<T> = Box<dyn FnOnce(&Arc<ThreadPool>) -> Result<T, String> + Send>;

/// Who waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// A reader, for a question.
    Question,
    /// Somebody with time.
    Passage,
}

type Job = Box<dyn FnOnce(&Arc<ThreadPool>) + Send>;

#[derive(Default)]
struct Queue {
    questions: VecDeque<Job>,
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

    /// The next task; none when the workers are no longer wanted.
    fn next(&self) -> Option<Job> {
        let mut queue = self.lock();
        loop {
            if let Some(job) = queue.questions.pop_front().or_else(|| queue.passages.pop_front()) {
                return Some(job);
            }
            if queue.closed {
                return None;
            }
            queue = self.filled.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// One thread a pool: workers that shared the runtime's would wait for one another.
    fn work(&self) {
        let pool = Arc::new(ThreadPool::with_num_threads(1));
        while let Some(job) = self.next() {
            // Whoever waits hears of a panic by not being answered.
            let _ = catch_unwind(AssertUnwindSafe(|| job(&pool)));
        }
    }
}

/// Some threads; they end when this is dropped.
pub(crate) struct Workers {
    shared: Arc<Shared>,
    count: usize,
}

impl Workers {
    /// Those of this machine, one a core, for all models together.
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

    /// How much is done at once.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Does all tasks and keeps their order; waits on the calling thread.
    pub(crate) fn run_now<T: Send + 'static>(
        &self,
        urgency: Urgency,
        tasks: Vec<Task<T>>,
    ) -> Result<Vec<T>, String> {
        let expected = tasks.len();
        let (tell, told) = std::sync::mpsc::channel();
        self.queue(urgency, tasks, move |answer| {
            let _ = tell.send(answer);
        });
        in_order(expected, told.iter().collect())
    }

    /// The same for a task of the runtime, which waits without a thread.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        urgency: Urgency,
        tasks: Vec<Task<T>>,
    ) -> Result<Vec<T>, String> {
        let expected = tasks.len();
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        self.queue(urgency, tasks, move |answer| {
            let _ = tell.send(answer);
        });
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
    ) {
        let jobs = tasks.into_iter().enumerate().map(|(number, task)| {
            let tell = tell.clone();
            Box::new(move |pool: &Arc<ThreadPool>| tell((number, task(pool)))) as Job
        });
        let mut queue = self.shared.lock();
        match urgency {
            Urgency::Question => queue.questions.extend(jobs),
            Urgency::Passage => queue.passages.extend(jobs),
        }
        drop(queue);
        self.shared.filled.notify_all();
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.filled.notify_all();
    }
}

fn in_order<T>(expected: usize, mut answers: Vec<(usize, Result<T, String>)>) -> Result<Vec<T>, String> {
    answers.sort_by_key(|(number, _)| *number);
    let done = answers.into_iter().map(|(_, answer)| answer).collect::<Result<Vec<T>, String>>()?;
    if done.len() == expected { Ok(done) } else { Err("the model failed on a text".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn tasks(numbers: std::ops::Range<u32>) -> Vec<Task<u32>> {
        numbers.map(|number| Box::new(move |_: &Arc<ThreadPool>| Ok(number)) as Task<u32>).collect()
    }

    #[tokio::test]
    async fn answers_come_in_the_order_of_their_tasks() {
        let workers = Workers::start(3);
        let expected: Vec<u32> = (0..50).collect();
        assert_eq!(workers.run_now(Urgency::Passage, tasks(0..50)).unwrap(), expected);
        assert_eq!(workers.run(Urgency::Question, tasks(0..50)).await.unwrap(), expected);
        assert!(workers.run(Urgency::Question, tasks(0..0)).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_panic_is_an_error_and_the_worker_goes_on() {
        let workers = Workers::start(1);
        let panics: Task<u32> = Box::new(|_| panic!("as a model might"));
        assert!(workers.run(Urgency::Question, vec![panics]).await.is_err());
        assert_eq!(workers.run(Urgency::Question, tasks(7..8)).await.unwrap(), [7]);
    }

    #[test]
    fn a_question_overtakes_passages_that_wait() {
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
        workers.queue(Urgency::Passage, vec![first], |_| ());
        is_busy.recv().unwrap();
        workers.queue(Urgency::Passage, vec![named("second"), named("third")], |_| ());
        workers.queue(Urgency::Question, vec![named("question")], |_| ());
        begin.send(()).unwrap();
        drop(tell);
        drop(workers);
        assert_eq!(told.iter().collect::<Vec<_>>(), ["question", "second", "third"]);
    }
}
