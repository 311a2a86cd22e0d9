package historysql

import (
	"os"

	"golang.org/x/sys/unix"
)

// writes tells of writes to a file, also by other processes, as the kernel notices them. One that comes while nobody receives is told later.
type writes struct {
	C      chan struct{}
	events *os.File // of inotify
	ended  chan struct{}
}

// newWrites follows no file yet. It is nil if the kernel offers no more instances.
func newWrites() *writes {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil
	}
	w := &writes{C: make(chan struct{}), events: os.NewFile(uintptr(fd), "inotify"), ended: make(chan struct{})}
	go w.receive()
	return w
}

func (w *writes) receive() {
	buf := make([]byte, 4096) // equal events that nobody has read are one
	for {
		if _, err := w.events.Read(buf); err != nil {
			return
		}
		select {
		case w.C <- struct{}{}:
		case <-w.ended:
			return
		}
	}
}

// follow follows the file that is at the path now, and reports whether it can. It may be repeated.
func (w *writes) follow(path string) (followed bool) {
	conn, err := w.events.SyscallConn()
	if err != nil {
		return false
	}
	_ = conn.Control(func(fd uintptr) {
		_, err := unix.InotifyAddWatch(int(fd), path, unix.IN_MODIFY)
		followed = err == nil
	})
	return followed
}

func (w *writes) close() {
	close(w.ended)
	_ = w.events.Close()
}
