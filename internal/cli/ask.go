package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
)

// ask shows what the run waits for and reads the answer from the terminal, until it can be read or the person ends
// with Ctrl-D, which leaves the run waiting.
func (a *app) ask(ctx context.Context, p *view.Pending) (filled, bool, error) {
	f := filled{asked: true, interruptID: interruptID(p)}
	if p.Kind == machine.WaitSignal {
		f.signal, f.signalKey = p.SignalName, p.ID
		fmt.Fprintf(a.stderr, "\n%s %s waits for the signal %q. Has it come? Then write its payload, {} for none:\n",
			a.paint.wait("?"), a.paint.bold(plainCell(p.NodeID)), p.SignalName)
	} else {
		fmt.Fprintf(a.stderr, "\n%s an answer is needed\n", a.paint.wait("?"))
		a.describeInterrupt(p)
	}
	asked := decisions{calls: agentsteps.Approval(p.Show)}
	how := "JSON or key=value …"
	switch {
	case asked.calls != nil:
		if how = decisionsText; len(asked.calls) > 1 {
			how += "; the key of a call first for one of them"
		}
	case takesWords(p):
		how = "your answer"
	case onlyBoolean(p.ResumeSchema) != "":
		how = "yes or no, JSON or key=value …"
	}
	fmt.Fprintln(a.stderr, a.paint.faint("  write "+how+"; Ctrl-D leaves the run waiting"))
	for {
		fmt.Fprint(a.stderr, "> ")
		line, err := a.readLine(ctx)
		if errors.Is(err, io.EOF) {
			fmt.Fprintln(a.stderr)
			return filled{}, false, nil
		}
		if err != nil {
			return filled{}, false, err
		}
		switch {
		case asked.calls != nil:
			if f.payload, err = asked.take(line); err == nil && f.payload == nil {
				fmt.Fprintf(a.stderr, "%s not decided yet\n", asked.left())
				continue
			}
		case takesWords(p) && !strings.HasPrefix(strings.TrimSpace(line), "{"):
			if f.payload = map[string]any{"text": strings.TrimSpace(line)}; f.payload["text"] == "" {
				err = errors.New("an answer has at least a word")
			}
		case strings.TrimSpace(line) == "" && f.signal != "":
			continue // Enter says nothing of a signal, which others send
		default:
			f.payload, err = parsePayload(line, p.ResumeSchema)
		}
		if err == nil {
			return f, true, nil
		}
		fmt.Fprintf(a.stderr, "%s %v\n", a.paint.bad("error:"), err)
	}
}

// readLine reads one line of standard input, or returns when ctx ends. Reading a terminal cannot be cancelled, so
// the reading goroutine may outlive the call; it ends with the process, which is about to.
func (a *app) readLine(ctx context.Context) (string, error) {
	if a.lines == nil {
		a.lines = bufio.NewReader(a.stdin)
	}
	type read struct {
		line string
		err  error
	}
	done := make(chan read, 1)
	go func() {
		line, err := a.lines.ReadString('\n')
		if line != "" && errors.Is(err, io.EOF) {
			err = nil // a last line without its end
		}
		done <- read{line, err}
	}()
	select {
	case r := <-done:
		return r.line, r.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
