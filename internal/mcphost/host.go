package mcphost

import (
	"os"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Machine is where files are located: the system, the user's directory and the environment.
type Machine struct {
	GOOS string
	Home string
	// Directory is the project's folder.
	Directory string
	// Variable returns a variable of the environment, "" if it is not set.
	Variable func(name string) string
}

// join makes a path as the machine's system writes it.
func (m Machine) join(folder string, names ...string) string {
	separator := "/"
	if m.GOOS == "windows" {
		separator = `\`
	}
	if folder == "" {
		return ""
	}
	return strings.TrimRight(folder, separator) + separator + strings.Join(names, separator)
}

// settings is the folder with the settings of programs with a window, "" if it is unknown.
func (m Machine) settings() string {
	switch m.GOOS {
	case "windows":
		if roaming := m.Variable("APPDATA"); roaming != "" {
			return roaming
		}
		return m.join(m.Home, "AppData", "Roaming")
	case "darwin":
		return m.join(m.Home, "Library", "Application Support")
	}
	return m.unixSettings()
}

// unixSettings is the XDG folder for settings.
func (m Machine) unixSettings() string {
	if folder := m.Variable("XDG_CONFIG_HOME"); strings.HasPrefix(folder, "/") {
		return folder
	}
	return m.join(m.Home, ".config")
}

// Scope is the range of a registration.
type Scope string

// User is every project of the user, Project the people who work on the project in the current folder.
const (
	User    Scope = "user"
	Project Scope = "project"
)

// Host is a program that starts MCP servers, or connects to them.
type Host struct {
	// Name is the value of --host, Title the name for people.
	Name, Title string
	// Terminal is set if the host is started from a shell, and has the shell's PATH.
	Terminal bool
	// user returns the user's file and the folder that shows that the host is installed; "" without one.
	user func(Machine) (file, folder string)
	// project is the file below a project's folder, nil for hosts without one.
	project []string
	// key is the field or table that holds the servers.
	key string
	// toml is set if the file is TOML, which is read and not edited.
	toml bool
	// lenient is set if the host reads comments and trailing commas in JSON.
	lenient bool
	// first holds the first fields of each entry.
	first []member
	// joined is set if "command" is an array with the arguments, and the variables are in "environment".
	joined bool
	// asks is set if the host asks before calls, by default_tools_approval_mode in the server's table.
	asks bool
	// remote is how the host writes the address of a server.
	remote remote
	// link makes the address that installs a server, nil for hosts without one.
	link func(name string, members []member) string
}

// below makes the user function of a host that keeps its file in its own directory below the home directory.
func below(variable string, folder []string, file string) func(Machine) (string, string) {
	return func(m Machine) (string, string) {
		own := m.join(m.Home, folder...)
		if variable != "" && m.Variable(variable) != "" {
			own = m.Variable(variable)
		}
		return m.join(own, file), own
	}
}

var hosts = []Host{
	{
		Name: "claude-code", Title: "Claude Code", Terminal: true, key: "mcpServers", project: []string{".mcp.json"},
		remote: remote{first: []member{{"type", "http"}}, address: "url", variable: "${%s}"},
		user: func(m Machine) (string, string) {
			if own := m.Variable("CLAUDE_CONFIG_DIR"); own != "" {
				return m.join(own, ".claude.json"), own
			}
			return m.join(m.Home, ".claude.json"), m.join(m.Home, ".claude")
		},
	},
	{
		Name: "claude-desktop", Title: "Claude Desktop", key: "mcpServers",
		user: func(m Machine) (string, string) {
			if m.GOOS != "darwin" && m.GOOS != "windows" {
				return "", ""
			}
			own := m.join(m.settings(), "Claude")
			return m.join(own, "claude_desktop_config.json"), own
		},
	},
	{
		Name: "cursor", Title: "Cursor", key: "mcpServers", project: []string{".cursor", "mcp.json"}, link: cursorLink,
		remote: remote{address: "url", variable: "${env:%s}"},
		user:   below("", []string{".cursor"}, "mcp.json"),
	},
	{
		Name: "vscode", Title: "VS Code", key: "servers", project: []string{".vscode", "mcp.json"}, link: codeLink,
		lenient: true, first: []member{{"type", "stdio"}},
		remote: remote{first: []member{{"type", "http"}}, address: "url", variable: "${env:%s}"},
		user: func(m Machine) (string, string) {
			own := m.join(m.settings(), "Code", "User")
			return m.join(own, "mcp.json"), own
		},
	},
	{
		Name: "codex", Title: "Codex", Terminal: true, key: "mcp_servers", project: []string{".codex", "config.toml"}, toml: true, asks: true,
		remote: remote{address: "url"},
		user:   below("CODEX_HOME", []string{".codex"}, "config.toml"),
	},
	{
		Name: "opencode", Title: "opencode", Terminal: true, key: "mcp", project: []string{"opencode.json"},
		lenient: true, first: []member{{"type", "local"}}, joined: true,
		remote: remote{first: []member{{"type", "remote"}}, address: "url", variable: "{env:%s}"},
		user: func(m Machine) (string, string) {
			own := m.join(m.unixSettings(), "opencode") // on all systems
			return m.join(own, "opencode.json"), own
		},
	},
	{
		Name: "windsurf", Title: "Windsurf", key: "mcpServers",
		remote: remote{address: "serverUrl", variable: "${env:%s}"},
		user:   below("", []string{".codeium", "windsurf"}, "mcp_config.json"),
	},
	{
		Name: "zed", Title: "Zed", key: "context_servers", project: []string{".zed", "settings.json"},
		lenient: true, first: []member{{"source", "custom"}}, remote: remote{address: "url"},
		user: func(m Machine) (string, string) {
			own := m.join(m.unixSettings(), "zed") // on macOS too
			if m.GOOS == "windows" {
				own = m.join(m.settings(), "Zed")
			}
			return m.join(own, "settings.json"), own
		},
	},
}

// Known returns all supported hosts.
func Known() []Host { return slices.Clone(hosts) }

// Names returns the names of all hosts.
func Names() (names []string) {
	for _, h := range hosts {
		names = append(names, h.Name)
	}
	return names
}

// Find returns the host with a name.
func Find(name string) (Host, error) {
	for _, h := range hosts {
		if h.Name == name {
			return h, nil
		}
	}
	return Host{}, problem.New(problem.UsageError, "unknown host %q", name).
		WithHint("Use %s, or all for the installed ones. For another host, paste the entry that install --print prints.", problem.OrList(Names()))
}

// File returns the path of the host's file for a scope.
func (h Host) File(m Machine, scope Scope) (string, error) {
	if scope == Project {
		if h.project == nil {
			return "", problem.New(problem.UsageError, "%s does not support project files", h.Title).WithHint("Leave out --scope project.")
		}
		return m.join(m.Directory, h.project...), nil
	}
	file, _ := h.user(m)
	switch {
	case file != "":
		return file, nil
	case m.Home == "":
		return "", problem.New(problem.UsageError, "cannot find the file of %s: the home directory is unknown", h.Title).WithHint("Set HOME.")
	}
	return "", problem.New(problem.UsageError, "the file of %s on %s is unknown", h.Title, m.GOOS).
		WithHint("Paste the entry that --print prints into its settings.")
}

// Installed reports whether the user has the host: its file or directory exists.
func (h Host) Installed(m Machine) bool {
	file, folder := h.user(m)
	for _, path := range []string{file, folder} {
		if _, err := os.Stat(path); path != "" && err == nil {
			return true
		}
	}
	return false
}
