package graph_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/chat"
	agents "github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
)

// turning is a model that makes a call in each of so many turns, and then answers.
type turning struct{ turns int }

func (m turning) Chat(_ context.Context, req chat.Request) (chat.Reply, error) {
	turn := 1
	for _, m := range req.Messages {
		if m.Role == chat.Assistant {
			turn++
		}
	}
	if turn > m.turns {
		return chat.Reply{Text: "done"}, nil
	}
	return chat.Reply{
		Calls: []chat.Call{{ID: fmt.Sprint("c", turn), Name: "look", Arguments: fmt.Sprintf(`{"n":%d}`, turn)}}, Usage: chat.Usage{Prompt: 100, Completion: 10},
	}, nil
}

// BenchmarkAgentTurns holds turns of agents, with a stub model and a call of a stub tool each, against commits of the same disk; see
// BenchmarkDurableNodes. A turn takes two commits, so alone an agent cannot have more than half of them.
func BenchmarkAgentTurns(b *testing.B) {
	const turns = 50
	look := agents.Func("look", "Looks.", func(_ context.Context, in struct {
		N int `json:"n"`
	},
	) (int, error) {
		return in.N, nil
	})
	team, err := agents.New(agents.Config{
		Models: map[string]agents.Model{"main": {Chat: turning{turns}, Model: agentloop.Model{Model: "m"}}},
		Agents: map[string]agents.Agent{"clerk": {Config: agentloop.Config{Instructions: "Look.", Budgets: agentloop.Budgets{Turns: 2 * turns}}, Tools: []agents.Toolset{look}}},
	})
	if err != nil {
		b.Fatal(err)
	}
	node := `{"id":"work","type":"agent_delegate","config":{"agent_id":"clerk","protocol":"sdk","input_mapping":{"task":"${ .task }"}}}`
	d := workflow(b, "agents", []string{startNode(), node, endNode()}, "s work", "work e")
	for _, runs := range []int{1, 50} {
		b.Run(fmt.Sprintf("agents=%d", runs), func(b *testing.B) {
			raw, store := openRaw(b), &counting{Store: disk(b)}
			r := newRunner(b, store, graph.Options{Delegates: activities.Composite{SDK: team}})
			var rawTook, took time.Duration
			var commits, done int
			for b.Loop() {
				begun := time.Now()
				for range 2 * turns {
					raw.commit(b)
				}
				rawTook += time.Since(begun)
				commits += 2 * turns

				begun = time.Now()
				var all sync.WaitGroup
				for range runs {
					all.Go(func() {
						run, err := r.Start(b.Context(), graph.StartRequest{Definition: d, Input: object{"task": "Look."}, Wait: graph.Wait{Limit: time.Hour}})
						if err != nil || run.Status != machine.Completed {
							b.Errorf("%+v, %v", run, err)
						}
					})
				}
				all.Wait()
				took += time.Since(begun)
				done += runs * turns
			}
			rate, raws := float64(done)/took.Seconds(), float64(commits)/rawTook.Seconds()
			b.ReportMetric(rate, "turns/s")
			b.ReportMetric(raws, "raw-commits/s")
			b.ReportMetric(rate/raws, "x-raw")
			batches := float64(store.appends) / float64(done)
			if batches > 2+4.0/turns {
				b.Errorf("%v batches a turn: a turn takes two, a run three or four more", batches)
			}
			b.ReportMetric(batches, "batches/turn")
			b.ReportMetric(0, "ns/op") // an iteration is both, so its time says nothing
		})
	}
}
