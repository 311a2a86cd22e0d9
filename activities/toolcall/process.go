package toolcall

import (
	"log/slog"
	"os"
	"os/exec"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// drainTime is how long what a process has printed may take to be read after its end. It matters only where a process
// outside the group holds the pipes open.
const drainTime = time.Second

// process is a server's process with its pipes. Whoever starts one calls stop in the end.
type process struct {
	cmd           *exec.Cmd
	stdin, stdout *os.File
	stderr        *tail
	// exited is closed when the process has ended, its group is killed and its standard error has been read. state
	// is set then.
	exited chan struct{}
	state  string
}

// startProcess starts a server's process in a group of its own. The failure has code MCP_CLIENT_ERROR.
func startProcess(s Server, environment []string, stderr *tail, log *slog.Logger) (*process, error) {
	p := &process{stderr: stderr, exited: make(chan struct{})}
	p.cmd = exec.Command(s.Command, s.Args...)
	p.cmd.Env, p.cmd.Dir = environment, s.Directory
	leadGroup(p.cmd)
	// The pipes are made here and not by os/exec: its Wait would close them before they are read to the end.
	pipes := [3]struct{ r, w *os.File }{}
	fail := func(err error) (*process, error) {
		for _, pipe := range pipes {
			// Closing what was never opened is an error of no interest.
			_ = pipe.r.Close()
			_ = pipe.w.Close()
		}
		failure := activities.Fail(problem.MCPClientError, "the server cannot be started")
		failure.Err = err
		return nil, failure
	}
	for i := range pipes {
		var err error
		if pipes[i].r, pipes[i].w, err = os.Pipe(); err != nil {
			return fail(err)
		}
	}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = pipes[0].r, pipes[1].w, pipes[2].w
	if err := p.cmd.Start(); err != nil {
		return fail(err)
	}
	p.stdin, p.stdout = pipes[0].w, pipes[1].r
	for _, theirs := range []*os.File{pipes[0].r, pipes[1].w, pipes[2].w} {
		_ = theirs.Close()
	}
	log.Info("MCP server started", logPID, p.cmd.Process.Pid)
	go p.supervise(pipes[2].r, log)
	return p, nil
}

// supervise waits for the end of the process, and ends what it leaves behind.
func (p *process) supervise(stderr *os.File, log *slog.Logger) {
	read := make(chan struct{})
	go func() {
		defer close(read)
		p.stderr.readFrom(stderr)
	}()
	_ = p.cmd.Wait() // the state below says the same
	killGroup(p.cmd)
	// Standard output is read by the session, which closes it; closing a file twice does no harm.
	time.AfterFunc(drainTime, func() {
		_ = stderr.Close()
		_ = p.stdout.Close()
	})
	<-read
	_ = stderr.Close()
	p.state = p.cmd.ProcessState.String()
	log.Info("MCP server ended", logState, p.state)
	close(p.exited)
}

// stop ends the process: its standard input ends, after a grace it is asked with SIGTERM, after another one its whole
// group is killed. It returns when the process has ended.
func (p *process) stop(grace time.Duration) {
	_ = p.stdin.Close()
	if p.ends(grace) {
		return
	}
	terminateGroup(p.cmd)
	if p.ends(grace) {
		return
	}
	p.kill()
	<-p.exited
}

// kill ends the process and its group at once. It does not wait.
func (p *process) kill() {
	select {
	case <-p.exited: // the group's number may belong to somebody else by now
	default:
		killGroup(p.cmd)
	}
}

// ends waits for the end of the process, at most for d.
func (p *process) ends(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.exited:
		return true
	case <-timer.C:
		return false
	}
}
