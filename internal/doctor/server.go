package doctor

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Start describes how a host starts a server.
type Start struct {
	// Subject names the host and its file in findings.
	Subject string
	Command string
	Args    []string
	Env     map[string]string
	// Home is the user's folder, Directory the working directory of the server.
	Home, Directory string
	// Path is the PATH of the host; "" means the PATH of a program that was not started from a shell.
	Path string
	// Version is the expected version of the server.
	Version string
	// Reinstall is the command that corrects the host's file.
	Reinstall string
}

// barePath is the PATH of programs that were not started from a shell.
const barePath = "/usr/bin:/bin"

// patience is how long a server may take for its first answers. Hosts wait longer.
const patience = 20 * time.Second

// path is the PATH of the host.
func (s Start) path() string {
	if own := s.Env["PATH"]; own != "" {
		return own
	}
	return cmp.Or(s.Path, barePath)
}

// Environ returns the environment that a host gives a server: a few variables, and the variables of its file.
func (s Start) Environ() []string {
	env := []string{"HOME=" + s.Home}
	if runtime.GOOS == "windows" {
		env = nil // on Windows a program with a window gets the user's variables
		for _, name := range []string{"SystemRoot", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "TEMP", "TMP"} {
			env = append(env, name+"="+os.Getenv(name))
		}
	}
	for name, value := range s.Env {
		env = append(env, name+"="+value)
	}
	return append(env, "PATH="+s.path())
}

// Find returns the file of a program that a host starts by its name, "" if it is not found.
func (s Start) Find(name string) string {
	if strings.ContainsAny(name, `/\`) {
		return name
	}
	for _, folder := range filepath.SplitList(s.path()) {
		for _, ending := range []string{"", ".exe", ".cmd"} {
			file := filepath.Join(folder, name+ending)
			if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
				return file
			}
		}
	}
	return ""
}

// Serve starts the server, connects to it as a host does, and ends it.
func (r *Report) Serve(ctx context.Context, s Start) {
	file := s.Find(s.Command)
	if file == "" {
		r.Add(Problem, ServerNotInPath, s.Subject, s.Reinstall, "the command %q is not in the PATH of the host, %s", s.Command, s.path())
		return
	}
	switch info, err := os.Stat(file); {
	case err != nil:
		r.Add(Problem, ServerMissing, s.Subject, s.Reinstall, "program %s not found", file)
		return
	case !info.Mode().IsRegular() || runtime.GOOS != "windows" && info.Mode()&0o111 == 0:
		r.Add(Problem, ServerNotExecutable, s.Subject, "chmod +x "+file, "%s cannot be executed (%s)", file, info.Mode())
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, file, s.Args...)
	cmd.Env, cmd.Dir = s.Environ(), s.Directory
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	client := mcp.NewClient(&mcp.Implementation{Name: "workflows-engine doctor", Version: s.Version}, nil)
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		cancel()
		r.Add(Problem, ServerFailed, s.Subject, lastHint(stderr.String(), s.Reinstall), "the server does not answer: %v%s", err, quoted(stderr.String()))
		return
	}
	defer session.Close()
	r.ask(ctx, s, session)
}

// ask checks the description of a server, and whether it can work.
func (r *Report) ask(ctx context.Context, s Start, session *mcp.ClientSession) {
	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		r.Add(Problem, ServerFailed, s.Subject, s.Reinstall, "the server does not list its tools: %v", err)
		return
	}
	version := ""
	if about := session.InitializeResult(); about != nil && about.ServerInfo != nil {
		version = about.ServerInfo.Version
	}
	if version != s.Version {
		r.Add(Warning, ServerVersion, s.Subject, s.Reinstall, "%s has version %s, this command %s", s.Command, version, s.Version)
	}
	res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "workflow_list", Arguments: map[string]any{"limit": 1}})
	switch {
	case err != nil:
		r.Add(Problem, ServerFailed, s.Subject, s.Reinstall, "the server does not answer a call: %v", err)
	case res.IsError:
		message, hint := refusal(res)
		r.Add(Problem, ServerTrouble, s.Subject, hint, "%s", message)
	default:
		r.Add(OK, Server, s.Subject, "", "%s starts and answers: version %s, %d tools", s.Command, version, len(tools.Tools))
	}
}

// refusal returns the message of an error answer, and its hint.
func refusal(res *mcp.CallToolResult) (message, hint string) {
	raw, err := json.Marshal(res.StructuredContent)
	var content struct {
		Error struct {
			Message string
			Details struct{ Hint string }
		}
	}
	if err == nil && json.Unmarshal(raw, &content) == nil && content.Error.Message != "" {
		return content.Error.Message, content.Error.Details.Hint
	}
	for _, c := range res.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			return text.Text, ""
		}
	}
	return "the call was rejected", ""
}

// quoted returns the end of a program's output.
func quoted(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	const most = 600
	if len(text) > most {
		text = "…" + text[len(text)-most:]
	}
	return fmt.Sprintf("; it printed: %s", strings.ReplaceAll(text, "\n", " | "))
}

// lastHint returns the indented line after an error.
func lastHint(text, otherwise string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if last := lines[len(lines)-1]; strings.HasPrefix(last, "  ") {
		return strings.TrimSpace(last)
	}
	return otherwise
}
