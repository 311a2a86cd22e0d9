// Package childprocess starts the programs that an operator has configured, MCP servers and step commands, and ends
// all of their processes: each program leads its own process group, which is killed when the program has ended
// or is to end, together with processes that have left the group, as far as the system shows them. A child gets
// little of the engine's environment and its secrets from references; its standard error is kept and logged with
// those secrets masked.
package childprocess

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"
)

// drainTime is the time to read the output of a process after its end. It matters only if a process outside the group
// holds the pipes open.
const drainTime = time.Second

// sessionVariable marks the processes that belong to one Process.
const sessionVariable = "WORKFLOWS_ENGINE_SESSION"

// Program is a program to start. Nothing in it is expanded, and no shell is involved.
type Program struct {
	Command string
	Args    []string
	// Environment is the whole environment of the process, see Environment.
	Environment []string
	// Directory is where it runs; "" means the engine's working directory.
	Directory string
	// Sign, if not nil, is called when the process writes to its file descriptor 3. Windows has no such descriptor.
	Sign func()
}

// Process is a running program with its pipes. Whoever starts one calls Stop or End in the end, or waits for Exited,
// and closes Stdin and Stdout.
type Process struct {
	Stdin, Stdout *os.File
	// Stderr is the Tail given to Start.
	Stderr *Tail
	// PID is the number of the process, and of its group.
	PID int

	cmd *exec.Cmd
	// session is an entry of the environment that only this process and its children have.
	session string
	exited  chan struct{}
	ended   func(state string)

	mu sync.Mutex
	// over is set once the process was waited for: the number of its group may be reused from then on.
	over  bool
	state string
}

// Start starts a program in its own process group. stderr receives its standard error; ended, which may be nil,
// is called with its exit status. The error is the system's.
func Start(program Program, stderr *Tail, ended func(state string)) (*Process, error) {
	p := &Process{Stderr: stderr, session: sessionVariable + "=" + rand.Text(), exited: make(chan struct{}), ended: ended}
	p.cmd = exec.Command(program.Command, program.Args...)
	p.cmd.Env, p.cmd.Dir = append(slices.Clip(program.Environment), p.session), program.Directory
	leadGroup(p.cmd)
	// The pipes are made here and not by os/exec: its Wait would close them before they are read to the end.
	pipes := [3]struct{ r, w *os.File }{}
	fail := func(err error) (*Process, error) {
		for _, pipe := range pipes {
			// Closing a pipe that was never opened returns an error, which is ignored.
			_ = pipe.r.Close()
			_ = pipe.w.Close()
		}
		return nil, err
	}
	for i := range pipes {
		var err error
		if pipes[i].r, pipes[i].w, err = os.Pipe(); err != nil {
			return fail(err)
		}
	}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = pipes[0].r, pipes[1].w, pipes[2].w
	signs, err := program.listen(p.cmd)
	if err != nil {
		return fail(err)
	}
	err = p.cmd.Start()
	signs.begun(err == nil)
	if err != nil {
		return fail(program.blame(err))
	}
	p.Stdin, p.Stdout, p.PID = pipes[0].w, pipes[1].r, p.cmd.Process.Pid
	for _, theirs := range []*os.File{pipes[0].r, pipes[1].w, pipes[2].w} {
		_ = theirs.Close()
	}
	go p.supervise(pipes[2].r, signs)
	return p, nil
}

// blame names the folder if the folder is missing: the system's error is about the program.
func (p Program) blame(err error) error {
	if p.Directory == "" {
		return err
	}
	info, missing := os.Stat(p.Directory)
	switch {
	case missing != nil:
		return fmt.Errorf("its working directory: %w", missing)
	case !info.IsDir():
		return fmt.Errorf("its working directory %s is not a folder", p.Directory)
	}
	return err
}

// supervise waits for the end of the process, and ends the rest of its group.
func (p *Process) supervise(stderr *os.File, signs *signs) {
	read := make(chan struct{})
	go func() {
		defer close(read)
		p.Stderr.readFrom(stderr)
	}()
	_ = p.cmd.Wait() // the state below says the same
	p.mu.Lock()
	killRest(p.cmd)
	killSession(p.session)
	p.over, p.state = true, p.cmd.ProcessState.String()
	p.mu.Unlock()
	// Standard output is read by the caller, who closes it; closing a file twice does no harm.
	time.AfterFunc(drainTime, func() {
		_ = stderr.Close()
		_ = p.Stdout.Close()
	})
	<-read
	_ = stderr.Close()
	signs.close()
	if p.ended != nil {
		p.ended(p.state)
	}
	close(p.exited)
}

// Exited is closed when the process has ended, its group is killed and its standard error has been read.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// State is the exit status of the process, such as "exit status 1" or "signal: killed". It waits for the end.
func (p *Process) State() string {
	<-p.exited
	return p.state
}

// Succeeded reports whether the process has ended with status 0. It waits for the end.
func (p *Process) Succeeded() bool {
	<-p.exited
	return p.cmd.ProcessState.Success()
}

// Stop ends a process that ends by itself with its input: its standard input is closed, after a grace it is asked with
// SIGTERM, after another one its whole group is killed. It returns when the process has ended.
func (p *Process) Stop(grace time.Duration) {
	_ = p.Stdin.Close()
	if !p.ends(grace) {
		p.End(grace)
	}
}

// End asks the group with SIGTERM to end, and kills it after a grace. It returns when the process has ended.
func (p *Process) End(grace time.Duration) {
	p.signal(terminateGroup)
	if !p.ends(grace) {
		p.Kill()
		<-p.exited
	}
}

// Kill ends the process and its group at once. It does not wait.
func (p *Process) Kill() { p.signal(killGroup) }

func (p *Process) signal(send func(*exec.Cmd)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		send(p.cmd)
	}
}

// ends waits for the end of the process, at most for d.
func (p *Process) ends(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.exited:
		return true
	case <-timer.C:
		return false
	}
}
