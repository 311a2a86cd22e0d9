package graph_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// A target is notified of the end of a run by a function, such as one that puts the event into a queue.
func ExampleOptions_webhooks() {
	put := func(_ context.Context, _ string, body []byte) error {
		fmt.Println(string(body[:24]))
		return nil
	}
	store := historymem.New()
	runner, err := graph.New(store, graph.Options{
		Webhooks: map[string]graph.Webhook{"ops": {Events: []history.RunEvent{history.RunCompleted}}},
		Deliver: func(ctx context.Context, d history.Delivery) (history.Receipt, error) {
			return history.Receipt{Outcome: history.Sent}, put(ctx, d.EventID, d.Body)
		},
		DeliverLimit: time.Minute,
	})
	if err != nil {
		log.Fatal(err)
	}
	workflow, err := definition.Parse([]byte(`{
		"document": {"schema": "urn:example", "name": "short", "version": "1"}, "state_schema": {"type": "object"},
		"nodes": [{"id": "s", "type": "start"}, {"id": "e", "type": "end"}],
		"edges": [{"source": "__start__", "target": "s"}, {"source": "s", "target": "e"}]
	}`))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := runner.Start(context.Background(), graph.StartRequest{Definition: workflow, Notify: []string{"ops"}}); err != nil {
		log.Fatal(err)
	}
	if err := runner.Close(); err != nil { // it waits for the first attempt
		log.Fatal(err)
	}
	// Output: {"event":"run.completed"
}
