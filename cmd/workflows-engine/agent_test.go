package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/activities/chat/chattest"
	"github.com/workflows-engine/workflows-engine/history/historysql"
)

// What makes the test binary the program, or an MCP server with the tool note, which writes a line into a file.
const (
	asProgram = "WORKFLOWS_ENGINE_TEST_AS_PROGRAM"
	asTools   = "WORKFLOWS_ENGINE_TEST_AS_TOOLS"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(asTools) != "":
		serveNotes(os.Getenv(asTools))
	case os.Getenv(asProgram) != "":
		main()
	default:
		os.Exit(m.Run())
	}
}

func serveNotes(file string) {
	type note struct {
		Text string `json:"text"`
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "note", Description: "Writes a note."}, func(_ context.Context, _ *mcp.CallToolRequest, in note) (*mcp.CallToolResult, note, error) {
		f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, in, err
		}
		_, err = f.WriteString(in.Text + "\n")
		return nil, in, errors.Join(err, f.Close())
	})
	_ = server.Run(context.Background(), &mcp.StdioTransport{}) // until the engine closes it
}

// patience bounds everything that waits for a process.
const patience = 60 * time.Second

// endLease ends the lease of the process that owns a run, which ends by itself half a minute after a kill.
func endLease(t *testing.T, db, id string) {
	t.Helper()
	store, err := historysql.Open(t.Context(), db, historysql.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	owner, err := store.Owner(t.Context(), id)
	if err != nil || owner.Process == "" {
		t.Fatalf("owner %v, %v", owner, err)
	}
	if err := store.Release(t.Context(), owner.Process); err != nil {
		t.Fatal(err)
	}
}

// TestAgentSurvivesAKill kills the program while its agent waits for the model, after a call of a tool. Another process goes on: the model
// is asked that question again and no other, and the tool is not called twice.
func TestAgentSurvivesAKill(t *testing.T) {
	t.Parallel()
	server := chattest.Serve(t, chattest.Calls(chattest.Call("notes__note", `{"text":"one"}`)), chattest.Reply{Hang: true})
	folder := t.TempDir()
	notes := filepath.Join(folder, "notes.txt")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]any{
		"mcp.json": map[string]any{"mcpServers": map[string]any{"notes": map[string]any{"command": program, "env": map[string]string{asTools: notes}}}},
		"agents.json": map[string]any{
			"models": map[string]any{"m": map[string]any{"model": "x", "endpoint": map[string]any{"baseUrl": server.URL, "apiKeyEnv": "AGENT_KEY"}}},
			"agents": map[string]any{"writer": map[string]any{"instructions": "Take notes.", "tools": []any{map[string]any{"server": "notes"}}}},
		},
	} {
		text, err := json.Marshal(v)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	const key = "sk-very-secret-key-of-the-agent"
	command := func(args ...string) *exec.Cmd {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		t.Cleanup(cancel)
		cmd := exec.CommandContext(ctx, program, append(args, "--db", "runs.db")...)
		cmd.Dir = folder
		cmd.Env = []string{asProgram + "=1", "HOME=" + folder, "PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0", "AGENT_KEY=" + key, "WORKFLOW_ENGINE_AGENTS=agents.json", "WORKFLOW_ENGINE_MCP_CONFIG=mcp.json",
			"WORKFLOW_ENGINE_MCP_ALLOW_COMMANDS=" + program}
		return cmd
	}
	killed := command("agent", "run", "writer", "Note one", "--id", "r1")
	var said bytes.Buffer
	killed.Stderr = &said
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for begun := time.Now(); len(server.Asked()) < 2; <-ticker.C {
		if time.Since(begun) > patience {
			_ = killed.Process.Kill()
			_ = killed.Wait()
			t.Fatalf("the model is not asked:\n%s", said.String())
		}
	}
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait() // reports the kill
	endLease(t, filepath.Join(folder, "runs.db"), "r1")

	server.Then(chattest.Text("Noted."))
	goes := command("recover", "r1")
	var told bytes.Buffer
	goes.Stderr = &told
	answer, err := goes.Output()
	if err != nil || string(answer) != "{\n  \"text\": \"Noted.\"\n}\n" {
		t.Fatalf("%q, %v\n%s", answer, err, told.String())
	}
	asked := server.Asked()
	if len(asked) != 3 || !bytes.Equal(asked[1].Body, asked[2].Body) {
		t.Errorf("%d requests", len(asked))
	}
	if text, err := os.ReadFile(notes); string(text) != "one\n" {
		t.Errorf("notes %q, %v", text, err)
	}
	transcript, err := command("agent", "transcript", "r1").Output()
	if err != nil || strings.Count(string(transcript), "call 1: notes__note") != 1 || !strings.Contains(string(transcript), "Noted.") {
		t.Errorf("%s, %v", transcript, err)
	}
	files, _ := filepath.Glob(filepath.Join(folder, "runs.db*"))
	everything := [][]byte{transcript, told.Bytes(), said.Bytes()}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		everything = append(everything, text)
	}
	for _, text := range everything {
		if bytes.Contains(text, []byte(key)) {
			t.Error("the key of the model is kept or printed")
		}
	}
}
