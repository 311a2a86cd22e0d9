package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/fleet"
)

func newLimits(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "limits",
		Short: "List the limits that all processes of a database share",
		Long: `List the limits that all processes of a database share. AT ONCE is the largest number of attempts in flight, IN USE the number
that processes hold, A SECOND the largest number of starts in a second. WAITING are the attempts that wait for a limit.
--json has the part of each process.

An attempt also keeps to the limits of its process (--limits).`,
		Example: `  workflows-engine limits
  workflows-engine limits set llm_call=20,150/s step:charge=5 --for-all
  workflows-engine limits set llm_call=none --for-all`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.limits(cmd.Context(), asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	cmd.AddCommand(newLimitsSet(a))
	return cmd
}

func newLimitsSet(a *app) *cobra.Command {
	var forAll bool
	cmd := &cobra.Command{
		Use:   "set CLASS=LIMIT...",
		Short: "Set limits that all processes of a database share",
		Long: `Set limits that all processes of a database share. Other limits stay. A limit is a number of attempts at once, a number of starts a
second as in 150/s, both with a comma between them, or none, which removes the limit of the class. The classes are the same as in --limits:
step, llm_call (or llm), tool_call, agent_delegate, step:HANDLER, llm:ADDRESS, mcp:SERVER and agent:ID.

The processes of the database keep to the limits within two seconds.`,
		Example: `  workflows-engine limits set llm_call=20,150/s step:charge=5 --for-all
  workflows-engine limits set llm_call=none --for-all`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("%s requires at least one limit", cmd.CommandPath()).WithHint("Write CLASS=LIMIT, as in llm_call=20,150/s.")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !forAll {
				return usage("limits set requires --for-all: it changes what all processes of the database may do").
					WithHint("Add --for-all, or limit one process with its --limits.")
			}
			limits, err := config.SharedLimits(args)
			if err != nil {
				return err
			}
			return a.setLimits(cmd.Context(), limits)
		},
	}
	cmd.Flags().BoolVar(&forAll, "for-all", false, "set them for all processes of the database")
	return cmd
}

// limits prints the shared limits of a database.
func (a *app) limits(ctx context.Context, asJSON bool) error {
	return a.with(ctx, sessionOptions{store: readOnlyStore, executors: noExecutors}, func(s *session) error {
		limiter, err := graph.Need[graph.Limiter](s.engine, "limits")
		if err != nil {
			return err
		}
		uses, err := limiter.SharedLimits(ctx)
		if err != nil {
			return err
		}
		if asJSON {
			return s.writeJSON(a.stdout, fleet.LimitsJSON(uses))
		}
		if len(uses) == 0 {
			fmt.Fprintln(a.stderr, "the processes of the database share no limits")
			return nil
		}
		return a.writeLimits(uses)
	})
}

func (a *app) writeLimits(uses []history.LimitUse) error {
	rows := [][]string{{"CLASS", "AT ONCE", "IN USE", "A SECOND", "WAITING"}}
	for i := range uses {
		u := &uses[i]
		atOnce, inUse, rate := "-", "-", "-"
		if u.Concurrent > 0 {
			atOnce, inUse = strconv.Itoa(u.Concurrent), strconv.Itoa(u.Slots())
		}
		if u.PerSecond > 0 {
			rate = strconv.FormatFloat(u.PerSecond, 'f', -1, 64)
		}
		rows = append(rows, []string{u.Class, atOnce, inUse, rate, strconv.Itoa(u.Waiting())})
	}
	return writeTable(a.human, rows)
}

// setLimits sets shared limits of a database.
func (a *app) setLimits(ctx context.Context, limits []history.SharedLimit) error {
	return a.with(ctx, sessionOptions{executors: noExecutors, work: graph.WorkNone}, func(s *session) error {
		limiter, err := graph.Need[graph.Limiter](s.engine, "limits")
		if err != nil {
			return err
		}
		if err := limiter.SetLimits(ctx, limits...); err != nil {
			return err
		}
		for _, l := range limits {
			if _, err := fmt.Fprintf(a.human, "%s: %s\n", l.Class, fleet.BoundsText(l)); err != nil {
				return err
			}
		}
		return nil
	})
}
