// Command hostcheck prints a row of the table of models in docs/tested-hosts.md, from the history of a run that a model drove in an MCP host:
//
//	workflows-engine history ID --json | go run ./internal/hostcheck -model NAME -tokens N -rejected N
//
// The tests of this package are the checks of `make hosts`: hosts as npm has them, with a scripted model.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

func main() {
	r := row{}
	flag.StringVar(&r.Model, "model", "", "`name` of the model")
	flag.StringVar(&r.Host, "host", "", "name and version of the `host` (default: as it named itself to the server)")
	flag.StringVar(&r.Task, "task", "", "`text` of the task (default: name of the workflow)")
	flag.IntVar(&r.Tokens, "tokens", 0, "`number` of tokens, in and out, that the host reports for the task (default: those in the history)")
	flag.IntVar(&r.Rejected, "rejected", 0, "`number` of rejected calls in the host's transcript: they leave no record")
	flag.Parse()
	line, err := r.read(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "hostcheck:", err)
		os.Exit(1)
	}
	fmt.Println(line)
}

// row is a row of the table.
type row struct {
	Host, Model, Task string
	Tokens, Rejected  int
}

// read returns the row for a history, as `workflows-engine history --json` prints it.
func (r row) read(history io.Reader) (string, error) {
	if r.Model == "" {
		return "", errors.New("a row needs the name of the model: -model NAME")
	}
	var date time.Time
	host, workflow, finished, calls, failed := "", "", "no", 0, 0
	counted := 0
	lines := bufio.NewReader(history)
	for records := 0; ; records++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			if records == 0 {
				return "", errors.New("standard input is empty: pipe the output of workflows-engine history ID --json into it")
			}
			break
		} else if err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		var rec struct {
			Name      string
			CreatedAt time.Time `json:"created_at"`
			Payload   struct {
				WorkflowName string
				Actor        *struct{ Via, Name, Version string }
			}
			Activity struct {
				In  int `json:"tokens_in"`
				Out int `json:"tokens_out"`
			}
		}
		if err := json.Unmarshal(line, &rec); err != nil {
			return "", fmt.Errorf("line %d is not a record of history --json: %w", records+1, err)
		}
		date = rec.CreatedAt
		counted += rec.Activity.In + rec.Activity.Out
		if by := rec.Payload.Actor; by != nil && by.Via == "mcp" {
			calls++
			host = cmp.Or(host, strings.TrimSpace(by.Name+" "+by.Version))
		}
		switch rec.Name {
		case "ExecutionStarted":
			workflow = rec.Payload.WorkflowName
		case "ActivityFailed":
			failed++
		case "ExecutionCompleted":
			finished = "yes"
		}
	}
	tokens := "not reported"
	if n := cmp.Or(r.Tokens, counted); n > 0 {
		tokens = fmt.Sprint(n)
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %d | %s | %d |", date.Format(time.DateOnly), cmp.Or(r.Host, host, "unknown"), r.Model,
		cmp.Or(r.Task, workflow), finished, calls+r.Rejected, tokens, failed+r.Rejected), nil
}
