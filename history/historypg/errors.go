package historypg

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

var (
	errClosed   = problem.New(problem.Internal, "the store is closed")
	errReadOnly = problem.New(problem.StoreReadOnly, "the store was opened read-only")
)

// errUnknown reports that the connection was lost after a write was sent.
var errUnknown = errors.New("the connection was lost while the transaction was under way")

// stateOf returns the SQLSTATE of an error of the server, "" for other errors.
func stateOf(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// isLost reports whether the connection is lost. An error of severity FATAL is followed by its end, and may come after a commit.
func isLost(err error) bool {
	if err == nil {
		return false
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.SeverityUnlocalized == "FATAL" || e.SeverityUnlocalized == "PANIC" || e.Severity == "FATAL" || e.Severity == "PANIC"
	}
	_, ofNet := errors.AsType[net.Error](err)
	_, ofConnect := errors.AsType[*pgconn.ConnectError](err)
	return ofNet || ofConnect || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, pgconn.ErrConnClosed) || errors.Is(err, errUnknown)
}

// isUnsent reports whether a failed call has certainly changed nothing because the server never got it.
func isUnsent(err error) bool {
	_, ofConnect := errors.AsType[*pgconn.ConnectError](err)
	_, ofUncommitted := errors.AsType[*unsentError](err)
	return ofConnect || ofUncommitted || pgconn.SafeToRetry(err)
}

// The errors after which a transaction is tried again: the server has rolled it back.
const (
	stateDeadlock      = "40P01"
	stateSerialization = "40001"
	stateLockTimeout   = "55P03"
	stateReadOnly      = "25006"
	statePlanChanged   = "0A000" // a prepared statement of before a migration
	stateNoStatement   = "26000" // a prepared statement that a pooler or a restart has lost
	stateDuplicate     = "23505"
)

func isBusy(err error) bool {
	s := stateOf(err)
	return s == stateDeadlock || s == stateSerialization || s == stateLockTimeout
}

func isStale(err error) bool {
	s := stateOf(err)
	return s == statePlanChanged || s == stateNoStatement
}

// failureCause is an error of the driver without its text, which may contain the user, addresses and values.
type failureCause struct{ text string }

func (f *failureCause) Error() string { return f.text }

// failure gives an error of the driver a code and a hint. It returns an error with a code unchanged.
func (s *Store) failure(doing string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := problem.As(err); ok {
		return err
	}
	if s.closing.Err() != nil && !errors.Is(err, errUnknown) {
		return errClosed
	}
	return describe(doing, s.where.Host, err)
}

func describe(doing, host string, err error) error {
	switch {
	case errors.Is(err, errUnknown):
		return problem.New(problem.StoreOutcomeUnknown, "%s, or were: the connection to %s was lost", doing, host).
			WithHint("What the call writes may be stored or not. Look at the run before you repeat the call.")
	case stateOf(err) == "" && !isLost(err) && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)):
		return problem.New(problem.Internal, "%s: the call was cancelled", doing).WithCause(contextError(err))
	}
	code, what, hint := explain(err)
	e := problem.New(code, "%s: server %s", doing, host).WithCause(&failureCause{text: what})
	e.Hint = hint
	return e
}

func contextError(err error) error {
	if errors.Is(err, context.Canceled) {
		return context.Canceled
	}
	return context.DeadlineExceeded
}

// explain returns the code, the words and the hint for an error of the driver.
func explain(err error) (code problem.Code, what, hint string) {
	if state := stateOf(err); state != "" {
		what = "SQLSTATE " + state
		for _, known := range states {
			if known.state == state || len(known.state) == 2 && known.state == state[:2] {
				return known.code, known.what + " (" + what + ")", known.hint
			}
		}
		return problem.Internal, what, ""
	}
	code, hint = problem.StoreUnavailable, hintServer
	_, ofName := errors.AsType[*net.DNSError](err)
	_, ofTLS := errors.AsType[*tls.CertificateVerificationError](err)
	_, ofAuthority := errors.AsType[x509.UnknownAuthorityError](err)
	_, ofHost := errors.AsType[x509.HostnameError](err)
	timeout, ofNet := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, pgconn.ErrReadOnlyConnection), errors.Is(err, pgconn.ErrReadWriteConnection),
		errors.Is(err, pgconn.ErrPrimaryConnection), errors.Is(err, pgconn.ErrStandbyConnection):
		what, hint = "no server is one that target_session_attrs names", "Check target_session_attrs and the hosts in the URL. A failover may take a moment."
	case ofName:
		what = "the name of the host is not known"
	case ofTLS, ofAuthority, ofHost:
		what, hint = "the certificate of the server was not accepted", "Check sslmode and sslrootcert in the URL, and the name of the host."
	case errors.Is(err, syscall.ECONNREFUSED):
		what = "the connection was refused"
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ENOENT):
		what = "there is no socket"
	case errors.Is(err, os.ErrPermission):
		what = "permission was denied"
	case ofNet && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		what = "no answer in time"
	case strings.Contains(err.Error(), "server refused TLS connection"): // pgconn's error has no type
		what, hint = "the server offers no TLS, which sslmode demands", "Turn on TLS at the server (ssl = on). Only in a network that you trust, write sslmode=disable."
	case isLost(err):
		what = "the connection was lost"
	default:
		return problem.Internal, "the driver failed", ""
	}
	return code, what, hint
}

const hintServer = "Check that the server runs and that this machine reaches it, then try again."

// states lists the SQLSTATEs that have a code of their own; two characters stand for a class.
var states = []struct {
	state      string
	code       problem.Code
	what, hint string
}{
	{stateDeadlock, problem.StoreLocked, "a deadlock", "Nothing was written. Try again."},
	{stateSerialization, problem.StoreLocked, "a concurrent change", "Nothing was written. Try again."},
	{stateLockTimeout, problem.StoreLocked, "another transaction holds a lock", "Nothing was written. Try again; pg_stat_activity shows what holds the lock."},
	{"57014", problem.StoreUnavailable, "the statement took too long", "Nothing was written. Look at the load of the server, then try again."},
	{stateReadOnly, problem.StoreReadOnly, "the server or the role only reads", "Name the primary server, for instance with several hosts and target_session_attrs=read-write in the URL."},
	{"53100", problem.StoreFull, "the disk is full", "Nothing was written. Free some space on the server and try again."},
	{"53200", problem.StoreUnavailable, "the server has no memory left", "Nothing was written. Try again later."},
	{"53300", problem.StoreUnavailable, "the server has no connection left", "Give each process fewer connections, or raise max_connections of the server."},
	{"53", problem.StoreUnavailable, "the server lacks resources", "Nothing was written. Try again later."},
	{"57P03", problem.StoreUnavailable, "the server is starting or stopping", "Try again in a moment."},
	{"57P", problem.StoreUnavailable, "the server was stopped", hintServer},
	{"57", problem.StoreUnavailable, "an operator intervened", hintServer},
	{"08P01", problem.StoreUnavailable, "a pooler or the server refuses a setting of the connection", "Behind a transaction pooler, add default_query_exec_mode=exec to the URL."},
	{"08", problem.StoreUnavailable, "the connection failed", hintServer},
	{"28", problem.StoreUnavailable, "the server refused the user", "Check the user and the password, and pg_hba.conf of the server."},
	{"3D000", problem.StoreUnavailable, "the database does not exist", "Create the database, or name another one."},
	{"42704", problem.StoreUnavailable, "the server does not know a setting of the connection", "Check the names of the settings in the URL."},
	{"22023", problem.StoreUnavailable, "the server does not accept a setting of the connection", "Check the values of the settings in the URL."},
	{"42501", problem.StoreUnavailable, "the role lacks a right", "Let a role that may create the schema run workflows-engine db migrate, and grant this role the rights that docs/database.md lists."},
	{"3F000", problem.StoreUnavailable, "the schema does not exist", "Name the schema of the store."},
	{"42P01", problem.HistoryCorrupt, "a table is missing", hintForeign},
	{"42703", problem.HistoryCorrupt, "a column is missing", hintForeign},
	{"42P07", problem.HistoryCorrupt, "a table of this name exists", hintForeign},
	{"22P02", problem.HistoryCorrupt, "a stored value cannot be read", hintDamaged},
	{"XX", problem.HistoryCorrupt, "the data of the server is damaged", hintDamaged},
	{"58", problem.StoreUnavailable, "the server cannot read or write a file", "Look at the log of the server."},
	{"54000", problem.ValidationError, "a limit of the server is exceeded, such as the length of an id", "Use a shorter id. If it is short, look at the log of the server."},
}

const (
	hintForeign = "The schema holds the tables of another application, or not all tables of a store. Name another schema, or restore this one from a backup."
	hintDamaged = "Look at the log of the server, check it with amcheck, and restore the last backup."
)

// isUnreadable reports whether an error concerns the rows of one run, not the store.
func isUnreadable(err error) bool {
	e, ok := problem.As(err)
	return ok && e.At.ExecutionID != "" && (e.Code == problem.HistoryCorrupt || e.Code == problem.HistoryNewer)
}
