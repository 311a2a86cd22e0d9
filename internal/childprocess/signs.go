package childprocess

import (
	"os"
	"os/exec"
	"runtime"
)

// signs is the pipe for the signs of life of a process; nil for a program without Sign.
type signs struct {
	r, w *os.File
	sign func()
	read chan struct{}
}

// listen adds the pipe for signs of life to a process, as its file descriptor 3.
func (p Program) listen(cmd *exec.Cmd) (*signs, error) {
	if p.Sign == nil || runtime.GOOS == "windows" {
		return nil, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.ExtraFiles = []*os.File{w}
	return &signs{r: r, w: w, sign: p.Sign, read: make(chan struct{})}, nil
}

// begun reads the signs of a process that has started; otherwise it closes the pipe.
func (s *signs) begun(started bool) {
	switch {
	case s == nil:
		return
	case !started:
		close(s.read)
		s.close()
	default:
		_ = s.w.Close()
		go s.listen()
	}
}

func (s *signs) listen() {
	defer close(s.read)
	buffer := make([]byte, 4<<10)
	for {
		n, err := s.r.Read(buffer)
		if n > 0 {
			s.sign()
		}
		if err != nil {
			return
		}
	}
}

// close ends the reading: the process has ended, and no sign is called for afterwards.
func (s *signs) close() {
	if s == nil {
		return
	}
	_ = s.r.Close()
	_ = s.w.Close()
	<-s.read
}
