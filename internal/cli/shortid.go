package cli

import (
	"context"
	"log/slog"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// shortID is the beginning of an id that the engine has made. Ids of the user's own are not looked for.
var shortID = regexp.MustCompile(`^[0-9a-f]{4,8}$|^[0-9a-f]{8}-[0-9a-f-]{0,26}$`)

// uuidBegins fits ids that the engine has made. Their first 13 characters are the millisecond in which they were made: shownOfUUID of
// them name a run.
var uuidBegins = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7`)

const shownOfUUID = 13

// maxCandidates is how many runs are named that a short id may mean.
const maxCandidates = 10

// completeShortID replaces the beginning of a run's id in the arguments by the id. What no run fits is left to the command to report.
func (a *app) completeShortID(cmd *cobra.Command, args []string) error {
	if len(args) == 0 || !shortID.MatchString(args[0]) {
		return nil
	}
	s, err := a.open(cmd.Context(), sessionOptions{store: readOnlyStore, executors: noExecutors, log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil // the command says what is wrong
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
		return problem.New(problem.UsageError, "several runs begin with %q: %s%s", args[0], strings.Join(fitting, ", "), more).WithHint("Write more of the id.")
	}
	return nil
}

// runsThatBegin lists the runs whose id begins with a prefix, without subworkflows, or the run with that very id alone.
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
