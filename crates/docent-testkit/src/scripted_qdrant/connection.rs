//! A connection that can be closed from inside a call.
//!
//! Invariant: this closes one connection; the server and its other clients continue.

use std::io;
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tonic::transport::server::Connected;

/// The connection as the server uses it.
pub(super) struct Line {
    stream: TcpStream,
    closer: ConnectionCloser,
}

/// Another handle of the same socket, attached to every request.
#[derive(Clone)]
pub(super) struct ConnectionCloser(Arc<std::net::TcpStream>);

impl Line {
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let stream = stream.into_std()?;
        let closer = ConnectionCloser(Arc::new(stream.try_clone()?));
        Ok(Self { stream: TcpStream::from_std(stream)?, closer })
    }
}

impl ConnectionCloser {
    /// Closes the connection and never returns: the call dies with its connection.
    pub(super) async fn close(&self) -> ! {
        // A connection that is already closed is fine.
        let _ = self.0.shutdown(Shutdown::Both);
        std::future::pending().await
    }
}

impl Connected for Line {
    type ConnectInfo = ConnectionCloser;

    fn connect_info(&self) -> ConnectionCloser {
        self.closer.clone()
    }
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Line {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
