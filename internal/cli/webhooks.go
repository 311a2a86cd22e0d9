package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/shellword"
)

func newWebhook(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "webhook",
		Short: "Manage webhooks",
		Long: `Manage the webhooks of --webhooks or $WORKFLOW_ENGINE_WEBHOOKS, which are sent when a run completes, fails, is cancelled or asks a
question. A delivery is stored with the step that causes it. Any process that drives runs and has the target sends it: at least once, in
up to five attempts within about 36 minutes. docs/webhooks.md describes the checks of a receiver.`,
	}, newWebhooksList(a), newWebhooksRetry(a), newWebhooksTest(a))
}

// registerNotify adds the flag that names targets.
func registerNotify(a *app, cmd *cobra.Command, names *[]string) {
	cmd.Flags().StringSliceVar(names, "notify", nil, "notify this webhook `target` of the run (--webhooks); may be repeated")
	if err := cmd.RegisterFlagCompletionFunc("notify", a.completeTargets); err != nil {
		panic(err) // the flag is registered in the line above
	}
}

// completeTargets completes the name of a webhook target.
func (a *app) completeTargets(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	c, err := a.flags.LoadWebhooks(a.env)
	if err != nil || c.Webhooks == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.Sorted(maps.Keys(c.Webhooks.Targets)), cobra.ShellCompDirectiveNoFileComp
}

type webhooksListOptions struct {
	states      []string
	run, target string
	limit       int
	cursor      string
	json        bool
}

func newWebhooksList(a *app) *cobra.Command {
	var o webhooksListOptions
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List webhook deliveries",
		Long: `List deliveries, the newest first: each is an event of a run for one target. The attempts of a dead delivery are used up: webhooks
retry sends it again. --json has each attempt.`,
		Example: `  workflows-engine webhook list --state dead
  workflows-engine webhook list --run order-17 --json`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listWebhooks(cmd.Context(), o) },
	}
	set := cmd.Flags()
	set.StringSliceVar(&o.states, "state", nil, "list only deliveries in this `state`: pending, delivered, dead, unwanted or moved; may be repeated")
	set.StringVar(&o.run, "run", "", "list only deliveries of the run with this `id`")
	set.StringVar(&o.target, "target", "", "list only deliveries to the target with this `name`")
	set.IntVar(&o.limit, "limit", 100, "list at most this `number` of deliveries, up to 1000")
	set.StringVar(&o.cursor, "cursor", "", "continue from this `cursor`, printed by the previous page")
	set.BoolVar(&o.json, "json", false, "print JSON, one object a line")
	var states []string
	for _, s := range history.DeliveryStates() {
		states = append(states, string(s))
	}
	if err := cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(states, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag is registered a few lines above
	}
	return cmd
}

func (a *app) listWebhooks(ctx context.Context, o webhooksListOptions) error {
	q := history.DeliveryQuery{ExecutionID: o.run, Target: o.target, Limit: o.limit, Cursor: o.cursor}
	for _, s := range o.states {
		if !slices.Contains(history.DeliveryStates(), history.DeliveryState(s)) {
			return usage("invalid value %q for --state", s).WithHint("Write %s.", problem.OrList(history.DeliveryStates()))
		}
		q.States = append(q.States, history.DeliveryState(s))
	}
	if o.limit < 1 || o.limit > 1000 {
		return usage("--limit must be from 1 to 1000, found %d", o.limit)
	}
	return a.with(ctx, sessionOptions{store: readOnlyStore, executors: noExecutors}, func(s *session) error {
		deliverer, err := graph.Need[graph.Deliverer](s.engine, "webhooks")
		if err != nil {
			return err
		}
		page, err := deliverer.Deliveries(ctx, q)
		if err != nil {
			return err
		}
		if o.json {
			for i := range page.Deliveries {
				if err := writeLine(a.stdout, deliveryJSON(&page.Deliveries[i])); err != nil {
					return err
				}
			}
		} else if err := a.writeDeliveries(page.Deliveries); err != nil {
			return err
		}
		if page.NextCursor != "" {
			a.say("%s more with --cursor %s\n", a.paint.faint("note:"), page.NextCursor)
		}
		return nil
	})
}

func (a *app) writeDeliveries(ds []history.Delivery) error {
	rows := [][]string{{"DELIVERY", "RUN", "EVENT", "TARGET", "STATE", "ATTEMPTS", "AGE", "LAST"}}
	for i := range ds {
		d := &ds[i]
		rows = append(rows, []string{
			d.ID, d.ExecutionID, string(d.Event), d.Target, a.stateText(d), fmt.Sprint(d.Attempts), age(d.CreatedAt, a.now()), dash(cut(lastAttempt(d), 60)),
		})
	}
	if err := writeTable(a.human, rows); err != nil {
		return err
	}
	if i := slices.IndexFunc(ds, func(d history.Delivery) bool { return d.State == history.DeliveryDead }); i >= 0 {
		retry := shellword.Command([]string{program, "webhook", "retry"}, []string{ds[i].ID}, a.flags.GivenStore()...)
		a.say("%s dead deliveries are not sent again; retry one with:\n  %s\n", a.paint.faint("note:"), retry)
	}
	return nil
}

// stateText returns the state of a delivery, and when it is sent next.
func (a *app) stateText(d *history.Delivery) string {
	if wait := d.Due.Sub(a.now()); d.State == history.DeliveryPending && wait > 0 {
		return "pending, due in " + wait.Round(time.Second).String()
	}
	return string(d.State)
}

// lastAttempt describes the newest attempt.
func lastAttempt(d *history.Delivery) string {
	if len(d.Tries) == 0 {
		return ""
	}
	last := &d.Tries[len(d.Tries)-1]
	switch {
	case last.EndedAt.IsZero():
		return "no outcome yet"
	case last.Error != "":
		return last.Error
	case last.Status != 0:
		return fmt.Sprintf("status %d", last.Status)
	}
	return string(last.Outcome)
}

func deliveryJSON(d *history.Delivery) jsonvalue.Ordered {
	m := jsonvalue.Ordered{
		{"delivery", d.ID}, {"event_id", d.EventID}, {"execution_id", d.ExecutionID}, {"seq", float64(d.Seq)}, {"event", string(d.Event)},
		{"target", d.Target}, {"state", string(d.State)},
	}
	m.Instant("created_at", d.CreatedAt)
	if d.State == history.DeliveryPending {
		m.Instant("due_at", d.Due)
	}
	m.Put("attempts", attemptsJSON(d))
	return m
}

func attemptsJSON(d *history.Delivery) []jsonvalue.Ordered {
	list := make([]jsonvalue.Ordered, len(d.Tries))
	for i := range d.Tries {
		t := &d.Tries[i]
		list[i] = jsonvalue.Ordered{{"id", history.AttemptID(d.ID, t.Number)}}
		list[i].Instant("began_at", t.BeganAt)
		list[i].Instant("ended_at", t.EndedAt)
		list[i].Text("outcome", string(t.Outcome))
		list[i].Number("status", int64(t.Status))
		list[i].Text("error", t.Error)
	}
	return list
}

func newWebhooksRetry(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "retry DELIVERY",
		Short: "Retry a webhook delivery",
		Long: `Retry a webhook delivery with all its attempts, under the same event id. If this process has the target (--webhooks), it is sent at
once, and the command waits up to 10 seconds for the result; otherwise a server or a worker with the target sends it. The exit status
is 1 if the delivery fails for good.`,
		Example: "  workflows-engine webhook retry dlv_3x7q… --webhooks webhooks.json",
		Args:    exactly("DELIVERY"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.retryWebhook(cmd.Context(), args[0], asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

func (a *app) retryWebhook(ctx context.Context, id string, asJSON bool) error {
	return a.with(ctx, sessionOptions{work: graph.WorkNone}, func(s *session) error {
		deliverer, err := graph.Need[graph.Deliverer](s.engine, "webhooks")
		if err != nil {
			return err
		}
		limited, stop := context.WithTimeout(ctx, deliverLimit)
		defer stop()
		d, err := deliverer.Redeliver(limited, id)
		if err != nil {
			return err
		}
		switch {
		case asJSON:
			err = writeLine(a.stdout, deliveryJSON(&d))
		case d.State == history.DeliveryDone:
			fmt.Fprintf(a.human, "%s: delivered to %s\n", d.ID, d.Target)
		case s.config.Webhooks == nil || !has(s.config.Webhooks.Targets, d.Target):
			fmt.Fprintf(a.human, "%s: pending; a server or a worker with the target %s sends it\n", d.ID, d.Target)
		default:
			fmt.Fprintf(a.human, "%s: %s: %s\n", d.ID, a.stateText(&d), dash(lastAttempt(&d)))
		}
		if err == nil && d.State == history.DeliveryDead {
			err = silent{exitFailed}
		}
		return err
	})
}

func has[T any](m map[string]T, name string) bool { _, ok := m[name]; return ok }

func newWebhooksTest(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "test TARGET",
		Short: "Send a test event",
		Long: `Send the signed event webhook.test to a target, and print the answer. Nothing is stored, and no database is needed. The exit status
is 1 if the target does not accept it.`,
		Example:           "  workflows-engine webhook test ops --webhooks webhooks.json",
		Args:              exactly("TARGET"),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.testWebhook(cmd.Context(), args[0]) },
		ValidArgsFunction: a.completeTargets,
	}
}

func (a *app) testWebhook(ctx context.Context, name string) error {
	c, err := a.flags.LoadWebhooks(a.env)
	if err != nil {
		return err
	}
	a.warn(c, nil)
	hooks, deliver := c.Hooks()
	if err := graph.CheckWebhooks(hooks, name); err != nil {
		return err
	}
	d := graph.TestDelivery(name, a.now())
	limit := hooks[name].Timeout
	if limit == 0 {
		limit = graph.DefaultWebhookTimeout
	}
	ctx, stop := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %v", limit))
	defer stop()
	r, err := deliver(ctx, d)
	switch {
	case err != nil && ctx.Err() != nil:
		err = context.Cause(ctx)
	case err == nil && r.Outcome != history.Sent:
		err = fmt.Errorf("%s", r.Error)
	}
	if err != nil {
		return fmt.Errorf("%s rejected the test: %w", name, err)
	}
	fmt.Fprintf(a.human, "OK: %s answers with status %d\n", name, r.Status)
	return nil
}
