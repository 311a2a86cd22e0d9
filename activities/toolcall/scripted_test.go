package toolcall_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// Environment variables that make the test binary a server.
const (
	scriptVariable = "SCRIPTED_SERVER"
	pidsVariable   = "SCRIPTED_PIDS"
)

// TestMain makes the test binary an MCP server where a test has started it as one.
func TestMain(m *testing.M) {
	if script := os.Getenv(scriptVariable); script != "" {
		os.Exit(serve(script))
	}
	os.Exit(m.Run())
}

type object = map[string]any

// serve is a hand-written MCP server over standard input and output. Its script says how it behaves as a whole, the
// name of a tool what a call does.
func serve(script string) int {
	note()
	switch script {
	case "stillborn":
		fmt.Fprintln(os.Stderr, "no such database")
		return 4
	case "mute", "deaf", "lasting":
		signal.Ignore(syscall.SIGTERM)
	}
	if script == "lasting" {
		<-time.After(time.Hour) // without cgo, select {} counts as a deadlock
	}
	s := &scripted{script: script, out: bufio.NewWriter(os.Stdout)}
	if script == "marked" {
		fmt.Print("\ufeff")
	}
	if script == "chatty" {
		fmt.Print("Server ready!\n\n{ log: 'not json' }\n{\"level\":\"info\"}\n")
	}
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			if script == "deaf" {
				<-time.After(time.Hour) // without cgo, select {} counts as a deadlock
			}
			return 0
		}
		var req struct {
			ID     any
			Method string
			Params object
		}
		if json.Unmarshal(line, &req) != nil || script == "mute" {
			continue
		}
		s.handle(req.ID, req.Method, req.Params)
	}
}

// note writes the process id down, so that the test can tell whether it is still there.
func note() {
	f, err := os.OpenFile(os.Getenv(pidsVariable), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		fmt.Fprintln(f, os.Getpid())
		f.Close()
	}
}

type scripted struct {
	// lists and calls count what was asked: the list, and the tool "strict".
	lists, calls int

	script string
	out    *bufio.Writer
}

func (s *scripted) send(message object) {
	message["jsonrpc"] = "2.0"
	if id, ok := message["id"]; ok && s.script == "texts" {
		message["id"] = fmt.Sprint(id)
	}
	text, _ := json.Marshal(message)
	s.out.Write(append(text, '\n'))
	s.out.Flush()
}

func (s *scripted) handle(id any, method string, params object) {
	switch method {
	case "initialize":
		version, capabilities := any(params["protocolVersion"]), object{"tools": object{}}
		if s.script == "ancient" {
			version = "1999-01-01"
		}
		if s.script == "unlisted" {
			capabilities = object{}
		}
		s.send(object{"id": id, "result": object{
			"protocolVersion": version, "capabilities": capabilities, "serverInfo": object{"name": "scripted", "version": "1"},
			"instructions": string(enginetest.Must(json.Marshal(params))),
		}})
	case "tools/list":
		if s.script == "unlisted" {
			return
		}
		var tools []any
		for _, name := range strings.Fields("echo text json image blank nothing failing failing_silently list number die hang refuse huge progress meta environment speaking leak malformed die_once half garbage key") {
			tools = append(tools, object{"name": name, "description": cmp.Or(os.Getenv("API_KEY"), "does") + " " + name, "inputSchema": object{"type": "object"}})
		}
		s.lists++
		size := object{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "required": []any{"size"}, "properties": object{"size": object{"type": "integer", "maximum": s.lists}}}
		tools = append(tools,
			object{"name": "strict", "inputSchema": size},
			object{"name": "promising", "inputSchema": object{"type": "object"}, "outputSchema": object{"type": "object", "required": []any{"ok"}}},
			object{"name": "breaking", "inputSchema": object{"type": "object"}, "outputSchema": object{"type": "object"}},
			object{"name": "elsewhere", "inputSchema": object{"$ref": "http://127.0.0.1:1/schema.json"}, "outputSchema": object{"$ref": "file:///etc/passwd"}})
		s.send(object{"id": id, "result": object{"tools": tools}})
	case "tools/call":
		s.call(id, params)
	}
}

func text(s string) object { return object{"type": "text", "text": s} }

func (s *scripted) call(id any, params object) {
	arguments, _ := params["arguments"].(object)
	answer := func(result object) { s.send(object{"id": id, "result": result}) }
	switch params["name"] {
	case "strict":
		s.calls++
		if s.script == "changing" && s.calls == 1 {
			s.send(object{"method": "notifications/tools/list_changed"})
		}
		answer(object{"structuredContent": object{"lists": s.lists, "calls": s.calls}})
	case "breaking":
		answer(object{"content": []any{text("done")}})
	case "promising", "elsewhere", "echo":
		answer(object{"content": []any{text(string(enginetest.Must(json.Marshal(arguments))))}, "structuredContent": arguments})
	case "speaking": // answers what it is told to
		for _, m := range arguments["logs"].([]any) {
			s.send(object{"method": "notifications/message", "params": m})
		}
		if e, ok := arguments["error"]; ok {
			s.send(object{"id": id, "error": e})
			return
		}
		answer(arguments["result"].(object))
	case "text":
		answer(object{"content": []any{text("  one"), object{"type": "image", "data": "AA==", "mimeType": "image/png"}, text("two \n")}})
	case "json":
		answer(object{"content": []any{text(`{"a":1}`)}})
	case "image":
		answer(object{"content": []any{object{"type": "image", "data": "AA==", "mimeType": "image/png"}}})
	case "blank":
		answer(object{"content": []any{text(" \n")}})
	case "nothing":
		answer(object{})
	case "failing":
		answer(object{"isError": true, "content": []any{text("disk full"), text("really")}, "structuredContent": object{"a": 1}})
	case "failing_silently":
		answer(object{"isError": true, "content": []any{}})
	case "list":
		answer(object{"content": []any{}, "structuredContent": []any{1, 2}})
	case "number":
		answer(object{"content": []any{}, "structuredContent": 7})
	case "die":
		fmt.Fprintln(os.Stderr, "last words, key "+os.Getenv("API_KEY"))
		os.Exit(3)
	case "die_once":
		if pids, _ := os.ReadFile(os.Getenv(pidsVariable)); len(strings.Fields(string(pids))) < 2 {
			os.Exit(3)
		}
		answer(object{"structuredContent": arguments})
	case "half":
		fmt.Fprintf(s.out, `{"jsonrpc":"2.0","id":%v,"result":{"content":[{"type":"te`, id)
		s.out.Flush()
		os.Exit(0)
	case "garbage":
		fmt.Fprint(s.out, "{\"jsonrpc\": not JSON }\n")
		s.out.Flush()
	case "key":
		answer(object{"isError": true, "content": []any{text("the key " + os.Getenv("API_KEY") + " is refused")}})
	case "hang":
	case "refuse":
		s.send(object{"id": id, "error": object{"code": -32001, "message": "not today", "data": object{"why": "rain"}}})
	case "huge":
		fmt.Fprintf(s.out, `{"jsonrpc":"2.0","id":%v,"result":{"content":[{"type":"text","text":"`, id)
		piece := strings.Repeat("x", 1<<20)
		for range int(arguments["mib"].(float64)) {
			s.out.WriteString(piece)
		}
		fmt.Fprint(s.out, "\"}]}}\n")
		s.out.Flush()
	case "progress":
		meta, _ := params["_meta"].(object)
		for i := range 3 {
			s.send(object{"method": "notifications/progress", "params": object{"progressToken": meta["progressToken"], "progress": i + 1, "total": 3, "message": "working"}})
		}
	case "meta":
		answer(object{"structuredContent": params})
	case "environment":
		answer(object{"structuredContent": object{"environ": os.Environ(), "directory": enginetest.Must(os.Getwd())}})
	case "leak":
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), scriptVariable+"=lasting")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			panic(err)
		}
		answer(object{"structuredContent": object{"pid": strconv.Itoa(child.Process.Pid)}})
	case "malformed":
		answer(object{"content": "no list"})
	default:
		s.send(object{"id": id, "error": object{"code": -32602, "message": "no tool"}})
	}
}
