package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// patience bounds everything that waits for a process.
const patience = 2 * time.Minute

// installed makes the release for this machine, and installs its npm packages from their files into an empty folder.
func installed(t *testing.T) (dist, folder string) {
	t.Helper()
	if testing.Short() || soak.UnderRace {
		t.Skip("-short and the race detector leave out what builds both programs")
	}
	for _, name := range []string{"node", "npm"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("the npm packages were not tried: %v", err)
		}
	}
	t.Chdir("../..")
	dist, folder = filepath.Join(t.TempDir(), "dist"), t.TempDir()
	t.Setenv("VERSION", "1.2.3")
	t.Setenv("COMMIT", "0123456789abcdef")
	t.Setenv("SOURCE_DATE_EPOCH", "1767323046")
	if err := run(t.Context(), []string{"-out", dist, "-platforms", runtime.GOOS + "/" + runtime.GOARCH}); err != nil {
		t.Fatal(err)
	}
	args := []string{"install", "--offline", "--no-audit", "--no-fund", "--ignore-scripts", "--cache", filepath.Join(folder, "cache")}
	packages, err := filepath.Glob(filepath.Join(dist, "npm", "*.tgz"))
	if err != nil || len(packages) != 3 {
		t.Fatalf("%v, %v", packages, err)
	}
	npm := exec.CommandContext(t.Context(), "npm", append(args, packages...)...)
	npm.Dir, npm.Env = folder, environment(folder)
	if out, err := npm.CombinedOutput(); err != nil {
		t.Fatalf("npm install: %v\n%s", err, out)
	}
	return dist, folder
}

// environment has none of the user's settings.
func environment(folder string) []string {
	return []string{
		"HOME=" + folder, "USERPROFILE=" + folder, "LOCALAPPDATA=" + folder, "SystemRoot=" + os.Getenv("SystemRoot"), "PATH=" + os.Getenv("PATH"),
		"npm_config_update_notifier=false",
	}
}

// launcher is a command of the installed packages, as a user calls it.
func launcher(t *testing.T, folder, name string, args ...string) *exec.Cmd {
	if runtime.GOOS == "windows" {
		name += ".cmd"
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(folder, "node_modules", ".bin", name), args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = folder, environment(folder), patience
	return cmd
}

// TestInstalledPackages is what a user of the packages meets: versions, the archive in an empty container, a run from an MCP host, exit statuses, signals, and what is
// said when the package of the platform is missing.
func TestInstalledPackages(t *testing.T) {
	dist, folder := installed(t)
	checkSums(t, dist)
	for _, command := range [][]string{{"workflows-engine", "version"}, {"workflows-engine", "--version"}, {"workflows-engine-mcp", "--version"}} {
		out, err := launcher(t, folder, command[0], command[1:]...).Output()
		for _, want := range []string{command[0] + " 1.2.3", "0123456789abcdef", "2026-01-02T03:04:06Z"} {
			if err != nil || !strings.Contains(string(out), want) {
				t.Errorf("%v: %s, %v; want %s", command, out, err, want)
			}
		}
	}
	bill, err := os.ReadFile(filepath.Join(dist, fmt.Sprintf("workflows-engine-mcp_1.2.3_%s_%s.cdx.json", runtime.GOOS, runtime.GOARCH)))
	if err != nil || !strings.Contains(string(bill), `"version": "v1.2.3"`) || !strings.Contains(string(bill), "0123456789abcdef") {
		t.Errorf("bill of materials: %s, %v", bill, err)
	}

	driveLighthouse(t, launcher(t, folder, "workflows-engine-mcp"))
	out, err := launcher(t, folder, "workflows-engine", "status", "lighthouse").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "completed") {
		t.Errorf("the command line does not find the run of the server: %v\n%s", err, out)
	}

	cmd := launcher(t, folder, "workflows-engine", "nonsense")
	if out, err := cmd.CombinedOutput(); err == nil || cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "nonsense") {
		t.Errorf("unknown command: %v\n%s", err, out)
	}
	t.Run("empty root", func(t *testing.T) { runInAnEmptyRoot(t, dist) })
	t.Run("signals", func(t *testing.T) { passSignals(t, folder) })

	if err := os.RemoveAll(filepath.Join(folder, "node_modules", "@workflows-engine")); err != nil {
		t.Fatal(err)
	}
	cmd = launcher(t, folder, "workflows-engine-mcp", "--version")
	var said strings.Builder
	cmd.Stderr = &said
	if out, err := cmd.Output(); err == nil || cmd.ProcessState.ExitCode() != 1 || len(out) > 0 ||
		!strings.Contains(said.String(), "PLATFORM_PACKAGE_MISSING") || !strings.Contains(said.String(), "--omit=optional") {
		t.Errorf("missing platform package: %v, %q, %q", err, out, said.String())
	}
}

// checkSums: the checksums are those of all other files.
func checkSums(t *testing.T, dist string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dist, "workflows-engine_1.2.3_checksums.txt"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		data, err := os.ReadFile(filepath.Join(dist, filepath.FromSlash(name)))
		if got := fmt.Sprintf("%x", sha256.Sum256(data)); err != nil || got != sum {
			t.Errorf("%s: %s, %v; want %s", name, got, err, sum)
		}
		n++
	}
	if n != 8 { // an archive, two bills, three packages, the bundle, the entry
		t.Errorf("%d checksums:\n%s", n, text)
	}
}

// driveLighthouse takes a ticket through the lighthouse example, as a host does that follows what the answers ask for.
func driveLighthouse(t *testing.T, server *exec.Cmd) {
	t.Helper()
	text, err := os.ReadFile("examples/lighthouse/lighthouse.workflow.json")
	if err != nil {
		t.Fatal(err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: server, TerminateDuration: patience}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := session.Close(); err != nil {
			t.Errorf("the server ends with %v", err)
		}
	}()
	if got := session.InitializeResult().ServerInfo.Version; got != "1.2.3" {
		t.Errorf("the server has version %s", got)
	}
	results := map[string]any{
		"classify":    map[string]any{"intent": "billing", "confidence": 0.4, "summary": "charged twice"},
		"open_ticket": map[string]any{"ticket": map[string]any{"id": "SUP-1"}},
	}
	tool, args := "workflow_start", map[string]any{
		"execution_id": "lighthouse", "definition": json.RawMessage(text), "input": map[string]any{"ticket_text": "I was charged twice"},
	}
	var way []string
	for {
		res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
		if err != nil || res.IsError {
			t.Fatalf("%s: %v, %v", tool, err, res)
		}
		answer, _ := res.StructuredContent.(map[string]any)
		next, _ := answer["next"].(map[string]any)
		tool, _ = next["tool"].(string)
		args, _ = next["arguments"].(map[string]any)
		node, _ := answer["node_id"].(string)
		way = append(way, strings.TrimSpace(fmt.Sprint(answer["status"], " ", node)))
		switch answer["status"] {
		case "awaiting_activity":
			args["outcome"] = map[string]any{"ok": true, "result": results[node]}
		case "interrupted":
			args["resume_payload"] = map[string]any{"intent": "billing"}
		default:
			want := "awaiting_activity classify, interrupted ask_person, awaiting_activity open_ticket, completed"
			if got := strings.Join(way, ", "); !strings.HasPrefix(got, want) {
				t.Fatalf("the run went %s; want %s\n%v", got, want, answer)
			}
			return
		}
	}
}

// passSignals: a signal to the launcher reaches the server, which ends in order; its status is that of the launcher.
func passSignals(t *testing.T, folder string) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such signals")
	}
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		cmd := launcher(t, folder, "workflows-engine-mcp")
		var said strings.Builder
		cmd.Stderr = &said
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		late := time.AfterFunc(patience, func() { cmd.Process.Kill() })
		const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
		_, err = stdin.Write([]byte(hello + "\n"))
		if answered := bufio.NewScanner(stdout).Scan(); err != nil || !answered {
			t.Errorf("no answer: %v", err)
		}
		err = errors.Join(cmd.Process.Signal(signal), cmd.Wait()) // its input is still open
		if !late.Stop() || err != nil {
			t.Errorf("%v: %v\n%s", signal, err, said.String())
		}
	}
}
