package agentdemo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/internal/cli"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Case is a task with its expected result.
type Case struct {
	Name string `json:"name"`
	// Input is that of the run.
	Input map[string]any `json:"input"`
	// Answers are those of people, in order.
	Answers []map[string]any `json:"answers"`
	// Model are the scripted replies, in order. A real model does not get them.
	Model []Reply `json:"model"`
	// ScriptOnly cases test errors of a model, so a real model is not asked.
	ScriptOnly bool   `json:"script_only"`
	Expect     Expect `json:"expect"`
}

// Expect is the expected result of a case. A real model is judged by Tools, Turns and CostUSD as upper bounds, and by the run's completion, which
// holds the answer to its schema.
type Expect struct {
	// Tools are those that were called, in order. A real model may call others in between.
	Tools []string `json:"tools"`
	// Output is the result of the run; nil is not looked at.
	Output any `json:"output"`
	// Stop is the stop_reason, Code that of a run that failed.
	Stop    string  `json:"stop"`
	Code    string  `json:"code"`
	Turns   int     `json:"turns"`
	CostUSD float64 `json:"cost_usd"`
}

// cases runs the cases, prints a table of them, and returns 1 if one has ended otherwise than expected.
func (s *stage) cases(ctx context.Context) (int, error) {
	text, err := fs.ReadFile(s.demo.Files, "cases.json")
	if err != nil {
		return 1, err
	}
	var all []Case
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&all); err != nil {
		return 1, fmt.Errorf("cases.json: %w", err)
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CASE\tTOOLS\tSTOP\tTURNS\tCOST\tJUDGED")
	status := 0
	for i := range all {
		c := &all[i]
		if c.ScriptOnly && s.model.own {
			fmt.Fprintf(table, "%s\t\t\t\t\tleft out: it is about a script\n", c.Name)
			continue
		}
		got, err := s.play(ctx, c, fmt.Sprint("case-", i+1))
		if err != nil {
			return 1, fmt.Errorf("%s: %w", c.Name, err)
		}
		judged := "ok"
		if faults := c.Expect.faults(got, s.model.own); len(faults) > 0 {
			judged, status = strings.Join(faults, "; "), 1
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t$%.4f\t%s\n", c.Name, strings.Join(got.Tools, " "), got.Stop, got.Turns, got.CostUSD, judged)
	}
	return status, table.Flush()
}

// play runs a case and reads the result from its history.
func (s *stage) play(ctx context.Context, c *Case, id string) (got Expect, err error) {
	script := slices.Clone(c.Model)
	for i := range script {
		script[i].Once = true
	}
	s.model.play(script)
	input, err := json.Marshal(c.Input)
	if err != nil {
		return got, err
	}
	args := []string{"run", s.definition, "--id", id, "--input", string(input), "--store-path", s.database}
	for _, a := range c.Answers {
		answer, err := json.Marshal(a)
		if err != nil {
			return got, err
		}
		args = append(args, "--resume", string(answer))
	}
	var said bytes.Buffer
	if status := cli.Main(ctx, args, nil, &said, &said); status > 1 {
		return got, errors.New(said.String())
	}
	store, err := historysql.Open(ctx, s.database, historysql.Options{})
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	records, err := store.Read(ctx, id, 1, 0)
	if err != nil {
		return got, err
	}
	for i := range records {
		r := &records[i]
		if step, _, ok := machine.StepOf(r); ok && step.Kind == agentloop.StepResult {
			tool, _ := step.Body["tool"].(string)
			got.Tools = append(got.Tools, tool)
		}
		if u := r.Payload.Usage; u != nil {
			got.Stop, _ = u["stop_reason"].(string)
			turns, _ := u["turns"].(float64)
			got.Turns = int(turns)
			got.CostUSD, _ = u["cost_usd"].(float64)
		}
		switch r.Name {
		case history.ActivityFailed:
			got.Code = r.Payload.Code
		case history.ExecutionCompleted:
			got.Output = r.Payload.Result.Value
		}
	}
	return got, nil
}

// faults says where a case has ended otherwise than expected. A real model is judged by tools, schema and budgets alone.
func (want *Expect) faults(got Expect, real bool) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if real {
		rest := want.Tools
		for _, tool := range got.Tools {
			if len(rest) > 0 && tool == rest[0] {
				rest = rest[1:]
			}
		}
		if len(rest) > 0 {
			fault("%s was not called in its turn", rest[0])
		}
		if want.Code == "" && got.Code != "" {
			fault("failed with %s", got.Code)
		}
		return faults
	}
	if !slices.Equal(got.Tools, want.Tools) {
		fault("want the tools %s", strings.Join(want.Tools, " "))
	}
	if want.Output != nil && !jsonvalue.Equal(got.Output, want.Output) {
		fault("output %s", jsonvalue.Canonical(got.Output))
	}
	if got.Stop != want.Stop || got.Code != want.Code {
		fault("want %s %s, got %s %s", want.Stop, want.Code, got.Stop, got.Code)
	}
	if got.Turns != want.Turns || got.CostUSD > want.CostUSD {
		fault("want %d turns for at most $%.4f", want.Turns, want.CostUSD)
	}
	return faults
}
