//! Threads that embed, one text at a time, and the queue before them.
//!
//! A reader waits for the vector of a question, while an ingest, or the check of an answer
//! that is still being written, can wait a little. So questions go first.
//!
//! Invariant: every text that was queued is answered, also when the model panics; texts of one
//! purpose are begun in the order they came.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use docent_core::embed::{EmbedError, Purpose, Vector};

/// What a worker does with a text. It is made once per thread.
pub type Work = Box<dyn FnMut(&str) -> Result<Vector, EmbedError> + Send>;

struct Job {
    text: String,
    answer: Box<dyn FnOnce(Result<Vector, EmbedError>) + Send>,
}

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

    /// The next text to embed; none when the workers are no longer wanted.
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
}

/// The threads; they end when this is dropped.
pub struct Workers {
    shared: Arc<Shared>,
    count: usize,
}

impl Workers {
    /// Starts a thread for each piece of work.
    pub fn start(work: Vec<Work>) -> Result<Self, EmbedError> {
        let workers = Self { shared: Arc::default(), count: work.len() };
        for mut work in work {
            let shared = workers.shared.clone();
            let run = move || {
                while let Some(job) = shared.next() {
                    let done = catch_unwind(AssertUnwindSafe(|| work(&job.text)));
                    (job.answer)(done.unwrap_or_else(|_| Err(panicked())));
                }
            };
            let started = std::thread::Builder::new().name("embed".to_owned()).spawn(run);
            started.map_err(|error| EmbedError::Unusable(format!("cannot start a thread: {error}")))?;
        }
        Ok(workers)
    }

    /// How many threads there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// One vector per text, in order; waits on the calling thread.
    pub fn embed_now(&self, texts: &[&str], purpose: Purpose) -> Result<Vec<Vector>, EmbedError> {
        let (tell, told) = std::sync::mpsc::channel();
        self.queue(texts, purpose, |number| {
            let tell = tell.clone();
            Box::new(move |vector| {
                let _ = tell.send((number, vector));
            })
        });
        drop(tell);
        in_order(texts.len(), told.iter().collect())
    }

    /// The same for a task, which waits without a thread.
    pub async fn embed(&self, texts: &[&str], purpose: Purpose) -> Result<Vec<Vector>, EmbedError> {
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        self.queue(texts, purpose, |number| {
            let tell = tell.clone();
            Box::new(move |vector| {
                let _ = tell.send((number, vector));
            })
        });
        drop(tell);
        let mut answers = Vec::with_capacity(texts.len());
        while let Some(answer) = told.recv().await {
            answers.push(answer);
        }
        in_order(texts.len(), answers)
    }

    fn queue(
        &self,
        texts: &[&str],
        purpose: Purpose,
        answer: impl Fn(usize) -> Box<dyn FnOnce(Result<Vector, EmbedError>) + Send>,
    ) {
        // Long texts first: the last worker to finish then holds a short one.
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.sort_by_key(|&number| std::cmp::Reverse(texts[number].len()));
        let jobs = order.into_iter().map(|number| Job { text: texts[number].to_owned(), answer: answer(number) });
        let mut queue = self.shared.lock();
        match purpose {
            Purpose::Query => queue.questions.extend(jobs),
            Purpose::Passage => queue.passages.extend(jobs),
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

fn in_order(
    expected: usize,
    mut answers: Vec<(usize, Result<Vector, EmbedError>)>,
) -> Result<Vec<Vector>, EmbedError> {
    answers.sort_by_key(|(number, _)| *number);
    let vectors = answers.into_iter().map(|(_, vector)| vector).collect::<Result<Vec<_>, _>>()?;
    if vectors.len() == expected { Ok(vectors) } else { Err(panicked()) }
}

fn panicked() -> EmbedError {
    EmbedError::Unusable("the model failed on a text".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn length(text: &str) -> Result<Vector, EmbedError> {
        assert_ne!(text, "panic");
        Ok(vec![text.len() as f32])
    }

    #[tokio::test]
    async fn vectors_come_in_the_order_of_their_texts() {
        let workers = Workers::start((0..3).map(|_| Box::new(length) as Work).collect()).unwrap();
        let texts = ["four", "a", "sixsix", "", "twotwotwo"];
        let expected: Vec<Vector> = texts.iter().map(|text| vec![text.len() as f32]).collect();
        assert_eq!(workers.embed_now(&texts, Purpose::Passage).unwrap(), expected);
        assert_eq!(workers.embed(&texts, Purpose::Query).await.unwrap(), expected);
        assert!(workers.embed(&[], Purpose::Query).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_panic_is_an_error_and_the_worker_goes_on() {
        let workers = Workers::start(vec![Box::new(length)]).unwrap();
        assert!(workers.embed(&["panic"], Purpose::Query).await.is_err());
        assert_eq!(workers.embed(&["ok"], Purpose::Query).await.unwrap(), [[2.0]]);
    }

    #[test]
    fn a_question_overtakes_passages_that_wait() {
        let (begin, begun) = mpsc::channel();
        let (done, seen) = mpsc::channel();
        let work = move |text: &str| {
            if text == "first" {
                // Holds the only worker until everything is queued.
                let _: Result<(), _> = begun.recv();
            }
            let _ = done.send(text.to_owned());
            Ok(vec![0.0])
        };
        let workers = Workers::start(vec![Box::new(work)]).unwrap();
        let quiet = |_| -> Box<dyn FnOnce(Result<Vector, EmbedError>) + Send> { Box::new(|_| ()) };
        workers.queue(&["first"], Purpose::Passage, quiet);
        workers.queue(&["second"], Purpose::Passage, quiet);
        workers.queue(&["third"], Purpose::Passage, quiet);
        workers.queue(&["question"], Purpose::Query, quiet);
        begin.send(()).unwrap();
        drop(workers);
        let order: Vec<String> = seen.iter().collect();
        // The worker may have been busy with "first" or not yet begun when the question came.
        let mut expected = vec!["first", "question", "second", "third"];
        if order[0] == "question" {
            expected.swap(0, 1);
        }
        assert_eq!(order, expected);
    }
}
