package cli

import (
	"bytes"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/config"
)

type verifyOptions struct {
	json, repair bool
	file         string
}

func newVerify(a *app) *cobra.Command {
	var o verifyOptions
	cmd := &cobra.Command{
		Use:   "verify [ID]",
		Short: "Verify a database",
		Long: `Verify a database, or one run in it: the file; the records of each run, complete and readable, with one end and one outcome for each
attempt; definitions by their hashes; projections (the answers of status and list); the replay of runs with the recorded outputs,
states, results and journals of agents; positions and timers of active runs; and leftover rows. No executor is called.

Nothing changes, and no process has to stop: each run is read in one snapshot. --repair rewrites wrong projections and missing
references to large values, and deletes rows of missing runs and unused large values. It never changes records.

--file verifies an exported file instead, without a database.

If the database cannot be read completely, verify prints its findings so far, with the error.

Exit status: 0 without findings, or if all were repaired; 1 with findings, each with its run, record, code and fix.`,
		Example: `  workflows-engine db verify
  workflows-engine db verify order-17
  workflows-engine db verify --db /backup/runs.db --json
  workflows-engine db verify --file run.jsonl
  workflows-engine db verify --repair`,
		Args:              atMostOneID,
		ValidArgsFunction: a.completeIDs(""),
		RunE: func(cmd *cobra.Command, args []string) error {
			id := ""
			if len(args) == 1 {
				id = args[0]
			}
			if o.file == "" {
				return a.verify(cmd.Context(), id, o)
			}
			if id != "" {
				return usage("--file and an ID cannot be given together: leave out %s", id)
			}
			return a.verifyFile(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print as JSON")
	cmd.Flags().BoolVar(&o.repair, "repair", false, "repair everything but records")
	cmd.Flags().StringVar(&o.file, "file", "", "verify this exported `file`, or - for standard input, instead of a database")
	cmd.PreRunE = exclusive("file", "repair")
	return cmd
}

// verified is the output of verify --json.
type verified struct {
	Runs        int64               `json:"runs"`
	Records     int64               `json:"records"`
	Definitions int64               `json:"definitions"`
	Findings    []storedFindingJSON `json:"findings"`
	// Error is why the rest was not checked.
	Error *verifyErrorJSON `json:"error,omitempty"`
}

type verifyErrorJSON struct {
	Code    string `json:"code,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// incomplete notes an error that ends the check.
func (v *verified) incomplete(err error) {
	v.Error = &verifyErrorJSON{Message: err.Error()}
	if p, ok := problem.As(err); ok {
		v.Error.Code, v.Error.Hint = string(p.Code), commandHint(p.Hint, p.At.ExecutionID)
	}
}

type storedFindingJSON struct {
	ExecutionID string `json:"execution_id,omitempty"`
	Seq         int64  `json:"seq,omitempty"`
	Code        string `json:"code"`
	Message     string `json:"message"`
	Hint        string `json:"hint"`
	Repaired    bool   `json:"repaired,omitempty"`
}

// verify checks a database, or one run. Findings before an error are printed, too: damage to the file matters most.
func (a *app) verify(ctx context.Context, id string, o verifyOptions) error {
	return a.with(ctx, sessionOptions{store: readOnlyIf(!o.repair), executors: noExecutors}, func(s *session) error {
		verifier, err := graph.Need[graph.Verifier](s.engine, "db verify")
		if err != nil {
			return err
		}
		return a.reportVerified(o, func(report func(history.Finding)) (history.Verified, error) {
			counts, err := verifier.Verify(ctx, id, o.repair, report)
			if err == nil && id != "" && counts.Runs == 0 {
				err = history.NotFound(id) // the default database does not exist yet
			}
			return counts, err
		})
	})
}

// reportVerified prints the findings of a check.
func (a *app) reportVerified(o verifyOptions, check func(report func(history.Finding)) (history.Verified, error)) error {
	v := verified{Findings: []storedFindingJSON{}}
	open := 0
	counts, err := check(func(f history.Finding) {
		if !f.Repaired {
			open++
		}
		if !o.json {
			a.printFinding(&f)
		}
		v.Findings = append(v.Findings, storedFindingJSON{f.ExecutionID, f.Seq, string(f.Code), f.Message, commandHint(f.Hint, f.ExecutionID), f.Repaired})
	})
	v.Runs, v.Records, v.Definitions = counts.Runs, counts.Records, counts.Definitions
	switch {
	case err != nil:
		v.incomplete(err)
	case open > 0:
		err = silent{exitFailed}
	}
	if o.json {
		return firstError(err, writeEncoded(a.stdout, v))
	}
	if v.Error == nil {
		fmt.Fprintf(a.human, "checked %s, %s: %s\n", count(int(v.Runs), "run"), count(int(v.Records), "record"), foundText(len(v.Findings), open))
	}
	return err
}

// verifyFile checks an exported file as import does, and replays its runs.
func (a *app) verifyFile(ctx context.Context, o verifyOptions) error {
	file, text, err := a.readRun(o.file)
	if err != nil {
		return err
	}
	c, err := a.flags.LoadStore(a.env)
	if err != nil {
		return err
	}
	c.Store = config.Memory
	store, err := c.OpenStore(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	if _, err := graph.Import(ctx, store, bytes.NewReader(text)); err != nil {
		return err
	}
	options := c.RunnerOptions(config.Executors{}, nil)
	options.ReadOnly = true
	runner, err := graph.New(store, options)
	if err != nil {
		return err
	}
	defer runner.Close()
	return a.reportVerified(o, func(report func(history.Finding)) (history.Verified, error) {
		counts := history.Verified{Definitions: int64(len(file.Definitions))}
		for i := range file.Runs {
			r := &file.Runs[i]
			if _, err := runner.Verify(ctx, r.ExecutionID, false, report); err != nil {
				return counts, err
			}
			counts.Runs, counts.Records = counts.Runs+1, counts.Records+int64(len(r.Records))
		}
		return counts, nil
	})
}

func foundText(found, open int) string {
	switch {
	case found == 0:
		return "no problems"
	case open == 0:
		return count(found, "finding") + ", all repaired"
	case open < found:
		return fmt.Sprintf("%s, %d repaired", count(found, "finding"), found-open)
	}
	return count(found, "finding")
}

// printFinding prints one finding: place, code, message and hint.
func (a *app) printFinding(f *history.Finding) {
	where := "database"
	if f.ExecutionID != "" {
		where = "run " + f.ExecutionID
	}
	if f.Seq > 0 {
		where += fmt.Sprintf(" record %d", f.Seq)
	}
	fmt.Fprintf(a.human, "%s: %s: %s\n", where, f.Code, f.Message)
	if f.Repaired {
		fmt.Fprintln(a.human, "  repaired")
	} else {
		fmt.Fprintf(a.human, "  %s\n", commandHint(f.Hint, f.ExecutionID, a.flags.GivenStore()...))
	}
}
