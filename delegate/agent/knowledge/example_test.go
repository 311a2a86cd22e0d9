package knowledge_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/delegate/agent/knowledge"
)

// An agent with the tools of a base: Agent.Tools takes the toolset. Here the tools are called as a model would.
func Example() {
	folder, err := os.MkdirTemp("", "")
	check(err)
	defer os.RemoveAll(folder)
	check(os.Mkdir(filepath.Join(folder, "hr"), 0o755))
	check(os.WriteFile(filepath.Join(folder, "hr", "leave.md"), []byte("# Leave\n\nThirty days.\n\n## Carry-over\n\nUp to five days.\n"), 0o600))

	library, err := knowledge.New(knowledge.Config{Path: folder, MaxSearchResults: 3})
	check(err)
	tools, err := library.Tools([]string{"hr"})
	check(err)
	_ = agent.Agent{Tools: []agent.Toolset{tools}}

	ctx := context.Background()
	found, err := tools.Call(ctx, agent.Call{Name: knowledge.Search, Arguments: map[string]any{"query": "How many days can I carry over?"}})
	check(err)
	ref := found.(map[string]any)["results"].([]any)[0].(map[string]any)["ref"]
	text, err := tools.Call(ctx, agent.Call{Name: knowledge.Read, Arguments: map[string]any{"ref": ref}})
	check(err)
	fmt.Println(ref)
	fmt.Printf("%q\n", text.(map[string]any)["text"])
	// Output:
	// hr/leave.md#carry-over
	// "## Carry-over\n\nUp to five days.\n"
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
