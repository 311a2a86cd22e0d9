// Package doctor diagnoses why hosts cannot work with the engine: it starts the server as a host does, and checks settings and databases.
// Every problem has a fix. Nothing is changed, except that a started server opens its database.
package doctor

import (
	"errors"
	"fmt"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Level is the severity of a finding.
type Level string

// OK is a fact, Warning a possible mistake, Problem a fault that keeps the engine from working.
const (
	OK      Level = "ok"
	Warning Level = "warning"
	Problem Level = "problem"
)

// Code is the subject of a finding. Codes are stable.
type Code string

// All codes.
const (
	// HomeMissing: the home directory is unknown.
	HomeMissing Code = "home-missing"
	// ServerMissing: the server program was not found.
	ServerMissing Code = "server-missing"
	// ServerNotExecutable: the server's file is not a program.
	ServerNotExecutable Code = "server-not-executable"
	// ServerNotInPath: the server is named without its directory, and the host does not find it.
	ServerNotInPath Code = "server-not-in-path"
	// ServerFailed: the server does not answer the handshake.
	ServerFailed Code = "server-failed"
	// ServerTrouble: the server answers calls with an error of its settings.
	ServerTrouble Code = "server-trouble"
	// ServerVersion: the server is of another version than the command.
	ServerVersion Code = "server-version"
	// Server: the server works.
	Server Code = "server"
	// HostFile: the configuration file of a host cannot be read.
	HostFile Code = "host-file"
	// HostNone: the server is not registered with a host.
	HostNone Code = "host-none"
	// Settings: a setting is invalid or questionable.
	Settings Code = "settings"
	// Program: a program of the settings is not found in the PATH of a host.
	Program Code = "program-not-in-path"
	// Executors: the executors of node types.
	Executors Code = "executors"
	// Agents: the agents that run inside the engine.
	Agents Code = "agents"
	// Signatures: which definitions may be run.
	Signatures Code = "signatures"
	// Workflows: the definitions that can be started by name.
	Workflows Code = "workflows"
	// WorkflowFile: a file of the workflow directory is invalid, or the directory cannot be read.
	WorkflowFile Code = "workflow-file"
	// Database: the database works, or cannot be opened.
	Database Code = "database"
	// DatabaseReadOnly: the database or its folder cannot be written to.
	DatabaseReadOnly Code = "database-read-only"
	// DatabaseVersion: the database has an older version.
	DatabaseVersion Code = "database-version"
	// DatabaseSpace: little space is left.
	DatabaseSpace Code = "database-space"
	// DatabaseNetwork: the database is on a network file system.
	DatabaseNetwork Code = "database-network"
	// DatabaseServer: the server of the database, and its round trip.
	DatabaseServer Code = "database-server"
	// DatabaseRights: the user lacks rights on the server.
	DatabaseRights Code = "database-rights"
	// DatabaseConnections: the server has few connections left.
	DatabaseConnections Code = "database-connections"
	// DatabaseClock: the server's clock differs from this machine's.
	DatabaseClock Code = "database-clock"
	// RunsUnattended: runs have no owner and cannot continue.
	RunsUnattended Code = "runs-unattended"
	// Workers: the processes that use the database.
	Workers Code = "workers"
	// LaneUnserved: runs wait for a worker that does not exist.
	LaneUnserved Code = "lane-unserved"
	// DatabaseTwo: two databases exist at default places.
	DatabaseTwo Code = "database-two"
	// DatabaseDiffers: a host's server uses another database than this command.
	DatabaseDiffers Code = "database-differs"
)

// Finding is the result of one check.
type Finding struct {
	Code    Code   `json:"code"`
	Level   Level  `json:"level"`
	Subject string `json:"subject"`
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
}

// Report collects findings.
type Report struct{ Findings []Finding }

// Add adds a finding. fix is "" for facts.
func (r *Report) Add(level Level, code Code, subject, fix, format string, args ...any) {
	r.Findings = append(r.Findings, Finding{Code: code, Level: level, Subject: subject, Message: fmt.Sprintf(format, args...), Fix: fix})
}

// AddError adds a problem with the hint of its error as the fix, or otherwise if it has no hint; an error with findings adds one problem for each.
func (r *Report) AddError(code Code, subject string, err error, otherwise string) {
	fix := otherwise
	if e, ok := errors.AsType[*problem.Error](err); ok {
		if e.Hint != "" {
			fix = e.Hint
		}
		for _, f := range e.Findings[:min(len(e.Findings), maxFindings)] {
			how := fix
			if f.Hint != "" {
				how = strings.ToUpper(f.Hint[:1]) + f.Hint[1:]
			}
			r.Add(Problem, code, subject, how, "%v: line %d, column %d: %s", err, f.At.Line, f.At.Column, f.Message)
		}
		if len(e.Findings) > 0 {
			return
		}
	}
	r.Add(Problem, code, subject, fix, "%v", err)
}

// maxFindings limits the findings of one error.
const maxFindings = 10

// Problems counts the problems.
func (r *Report) Problems() (n int) {
	for _, f := range r.Findings {
		if f.Level == Problem {
			n++
		}
	}
	return n
}
