package skills_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/delegate/agent/skills"
)

// An agent with a skill: Agent.Tools takes the toolset. The system text has its name and description.
func Example() {
	folder, err := os.MkdirTemp("", "")
	check(err)
	defer os.RemoveAll(folder)
	check(os.Mkdir(filepath.Join(folder, "memo-style"), 0o755))
	check(os.WriteFile(filepath.Join(folder, "memo-style", "SKILL.md"), []byte("---\ndescription: How memos are written.\n---\nWrite three lines.\n"), 0o600))

	library, err := skills.New(folder)
	check(err)
	tools, err := library.Tools([]string{"memo-style"})
	check(err)
	_ = agent.Agent{Tools: []agent.Toolset{tools}}

	prompt, err := tools.Prompt()
	check(err)
	fmt.Println(prompt)
	text, err := tools.Call(context.Background(), agent.Call{Name: skills.Read, Arguments: map[string]any{"skill": "memo-style"}})
	check(err)
	fmt.Println(text)
	// Output:
	// Skills. Before you do something that one of them is about, read it with read_skill:
	// - memo-style: How memos are written.
	// map[skill:memo-style text:Write three lines.]
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
