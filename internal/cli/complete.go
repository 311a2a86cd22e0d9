package cli

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
)

// completeIDs completes a command's first argument with the ids of stored runs, those in the phase if one is given.
func (a *app) completeIDs(phase history.Phase) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.completed(cmd, func(s *session) ([]string, error) {
			page, err := s.engine.List(cmd.Context(), history.ListQuery{Phase: phase, Limit: 100})
			var ids []string
			for _, e := range page.Executions {
				about := cut(cmp.Or(e.Title, e.DefinitionName), describedWidth) + ", " + phaseText(&e)
				if e.CurrentNodeID != "" && !e.Phase.Terminal() {
					about += " at " + e.CurrentNodeID
				}
				ids = append(ids, cobra.CompletionWithDesc(e.ID, about+", "+age(e.UpdatedAt, a.now())+" ago"))
			}
			return ids, err
		})
	}
}

// describedWidth is how many characters of a text describe a completion.
const describedWidth = 40

// completeWaits completes the first argument of a command with the ids of runs in a phase, and the second with the values of entry for the
// waits of the run, with descriptions; "" skips a wait.
func (a *app) completeWaits(phase history.Phase, entry func(*view.Pending) (value, about string)) cobra.CompletionFunc {
	ids := a.completeIDs(phase)
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		switch len(args) {
		case 0:
			return ids(cmd, args, typed)
		case 1:
			return a.waits(cmd, args[0], entry)
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeWait completes a flag with the values of entry for the waits of the run in the first argument.
func (a *app) completeWait(cmd *cobra.Command, flag string, entry func(*view.Pending) (value, about string)) {
	a.completeFlag(cmd, flag, func(cmd *cobra.Command, args []string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.waits(cmd, args[0], entry)
	})
}

func (a *app) waits(cmd *cobra.Command, id string, entry func(*view.Pending) (value, about string)) ([]string, cobra.ShellCompDirective) {
	return a.completed(cmd, func(s *session) ([]string, error) {
		run, err := s.theRun(cmd.Context(), id)
		if err != nil {
			return nil, err
		}
		var list []string
		for i := range run.Pending {
			if value, about := entry(&run.Pending[i]); value != "" {
				list = append(list, cobra.CompletionWithDesc(value, cut(about, describedWidth)))
			}
		}
		return unique(list), nil
	})
}

// The entries of completions: the activities of a host, the signals and the questions of a waiting run.
func hostWork(p *view.Pending) (value, about string) {
	if !p.Host {
		return "", ""
	}
	return p.NodeID, p.NodeType
}

func hostBranch(p *view.Pending) (value, about string) {
	if !p.Host || p.Span == nil {
		return "", ""
	}
	return p.Span.BranchName, p.NodeID
}

func hostKey(p *view.Pending) (value, about string) {
	if !p.Host {
		return "", ""
	}
	return p.IdempotencyKey, waiterText(p)
}

func awaitedSignal(p *view.Pending) (value, about string) { return p.SignalName, "at " + p.NodeID }

func openInterrupt(p *view.Pending) (value, about string) {
	if p.Kind != machine.WaitInterrupt {
		return "", ""
	}
	return p.ID, cmp.Or(p.Prompt, p.NodeID)
}

// completeNodes completes a flag with the nodes visited by the run in the first argument.
func (a *app) completeNodes(cmd *cobra.Command, flag string) {
	a.completeFlag(cmd, flag, func(cmd *cobra.Command, args []string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.completed(cmd, func(s *session) ([]string, error) {
			run, err := s.theRun(cmd.Context(), args[0])
			if err != nil {
				return nil, err
			}
			facts := nodesOf(cmd.Context(), s.store, run.DefinitionHash)
			var nodes []string
			err = s.eachRecord(cmd.Context(), run.ExecutionID, func(r *history.Record) error {
				if r.Name == history.ScheduleNode {
					nodes = append(nodes, cobra.CompletionWithDesc(r.Payload.NodeID, facts[r.Payload.NodeID].nodeType))
				}
				return nil
			})
			return unique(nodes), err
		})
	})
}

// completeLabels completes a flag with the labels of the most recently changed runs.
func (a *app) completeLabels(cmd *cobra.Command, flag string) {
	a.completeFlag(cmd, flag, func(cmd *cobra.Command, _ []string) ([]string, cobra.ShellCompDirective) {
		return a.completed(cmd, func(s *session) ([]string, error) {
			page, err := s.engine.List(cmd.Context(), history.ListQuery{Limit: 100})
			var labels []string
			for _, e := range page.Executions {
				for _, name := range slices.Sorted(maps.Keys(e.Labels)) {
					labels = append(labels, strings.TrimSuffix(name+"="+e.Labels[name], "="))
				}
			}
			return unique(labels), err
		})
	})
}

func (a *app) completeFlag(cmd *cobra.Command, flag string, complete func(*cobra.Command, []string) ([]string, cobra.ShellCompDirective)) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		return complete(cmd, args)
	})
	if err != nil {
		panic(err) // the flag is registered by the caller
	}
}

// completed opens the store and lists the completions of a word.
func (a *app) completed(cmd *cobra.Command, list func(*session) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	s, err := a.open(cmd.Context(), sessionOptions{store: readOnlyStore, executors: noExecutors, log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	found, err := list(s)
	if firstError(err, s.close()) != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// theRun returns the run that an argument names, by its id or a prefix of it.
func (s *session) theRun(ctx context.Context, named string) (*view.Run, error) {
	if shortID.MatchString(named) {
		fitting, err := runsThatBegin(ctx, s, named)
		if err != nil {
			return nil, err
		}
		if len(fitting) == 1 {
			named = fitting[0]
		}
	}
	return s.engine.Status(ctx, graph.StatusRequest{ExecutionID: named})
}

// unique removes duplicates.
func unique(list []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(text string) bool {
		was := seen[text]
		seen[text] = true
		return was
	})
}

// shortID matches the prefix of a generated id. Ids chosen by users are not searched.
var shortID = regexp.MustCompile(`^[0-9a-f]{4,8}$|^[0-9a-f]{8}-[0-9a-f-]{0,26}$`)

// uuidBegins matches generated ids. Their first 13 characters are a time in milliseconds, so shownOfUUID characters identify a run.
var uuidBegins = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7`)

const shownOfUUID = 13

// maxCandidates limits the runs that the error for an ambiguous short id names.
const maxCandidates = 10

// completeShortID replaces the prefix of an id in the arguments by the id. An unknown prefix is kept: the command reports it.
func (a *app) completeShortID(cmd *cobra.Command, args []string) error {
	if len(args) == 0 || !shortID.MatchString(args[0]) {
		return nil
	}
	s, err := a.open(cmd.Context(), sessionOptions{store: readOnlyStore, executors: noExecutors, log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil // the command reports the error
	}
	fitting, err := runsThatBegin(cmd.Context(), s, args[0])
	if err = firstError(err, s.close()); err != nil {
		return err
	}
	switch len(fitting) {
	case 0:
	case 1:
		args[0] = fitting[0]
	default:
		more := ""
		if len(fitting) > maxCandidates {
			fitting, more = fitting[:maxCandidates], " and others"
		}
		return problem.New(problem.UsageError, "id %q is ambiguous: %s%s", args[0], strings.Join(fitting, ", "), more).WithHint("Write more characters of the id.")
	}
	return nil
}

// runsThatBegin lists the ids of runs with a prefix, without subworkflows, or only the run with exactly this id.
func runsThatBegin(ctx context.Context, s *session, prefix string) (ids []string, err error) {
	if _, err := s.store.Execution(ctx, prefix); err == nil {
		return []string{prefix}, nil
	}
	for q := (history.ListQuery{Limit: 100}); ; {
		page, err := s.engine.List(ctx, q)
		if err != nil {
			return nil, err
		}
		for i := range page.Executions {
			if id := page.Executions[i].ID; strings.HasPrefix(id, prefix) && history.Root(id) == id {
				ids = append(ids, id)
			}
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			return ids, nil
		}
	}
}
