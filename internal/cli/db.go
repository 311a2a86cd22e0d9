package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

type migrateOptions struct{ dryRun, noBackup, json bool }

func newDB(a *app) *cobra.Command {
	var o migrateOptions
	migrate := &cobra.Command{
		Use:   "migrate",
		Short: "Migrate the database to the newest version",
		Long: `Bring a database of an older version of this engine to the newest version.
Servers, workers and commands that write do the same when they open it; commands that only read never do.

A file is backed up first, to a file beside it with its version and the time (UTC) in its name, such as
runs.db.v4-20261122T2209.bak. Older binaries can open the backup; it does not contain later records. Other processes cannot write during
backup and migration.

A schema on a PostgreSQL server is not backed up: use pg_dump. With --store-migrate off, this command is the only one that migrates it.

--dry-run changes nothing; for a server it prints the SQL. It cannot tell whether other processes have the database open.`,
		Example: `  workflows-engine db migrate --dry-run
  workflows-engine db migrate --db /var/lib/workflows/runs.db
  workflows-engine db migrate --no-backup`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.migrateStore(cmd.Context(), o) },
	}
	set := migrate.Flags()
	set.BoolVar(&o.dryRun, "dry-run", false, "change nothing; print versions, number of runs and backup size")
	set.BoolVar(&o.noBackup, "no-backup", false, "do not back up the database")
	set.BoolVar(&o.json, "json", false, "print as JSON")
	return group(&cobra.Command{
		Use:   "db",
		Short: "Manage the database",
		Long:  "Back up and verify the database, delete old runs, export and import runs, copy them to another database, and migrate the database.",
	}, newBackup(a), newVerify(a), newPrune(a), newExport(a), newImport(a), newCopy(a), migrate, newAdopt(a))
}

func newBackup(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Back up the database to a file",
		Long: `Back up a database in a file to a new FILE, while servers and workers use it. The backup has everything that was recorded before, and only its
owner can read it. FILE appears once it is complete; an existing one is not replaced.

A database on a PostgreSQL server is backed up with pg_dump.`,
		Example: `  workflows-engine db backup /backup/runs.db
  workflows-engine db backup --db /var/lib/workflows/runs.db "/backup/runs-$(date +%F).db"`,
		Args: exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.backUp(cmd.Context(), args[0]) },
	}
}

// backUp copies the database to a new file.
func (a *app) backUp(ctx context.Context, file string) (err error) {
	c, err := a.flags.LoadStore(a.env)
	if err != nil {
		return err
	}
	store, err := a.openStore(ctx, sessionOptions{store: readOnlyStore}, c)
	if err != nil {
		return err
	}
	defer func() { err = firstError(err, store.Close()) }()
	s, ok := history.As[*historysql.Store](store)
	if !ok {
		return problem.New(problem.Unsupported, "db backup requires a database in a file").
			WithHint("Back up a PostgreSQL server with pg_dump.")
	}
	if err := s.Backup(ctx, a.path(file)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.human, "%s was backed up to %s\n", c.Location(), file)
	return err
}

func newAdopt(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "adopt",
		Short: "Use a restored database of a server",
		Long: `Give the tables on a PostgreSQL server a new id after they were restored from a backup. Records newer than the backup are lost, so a process that
used the tables before must not continue from its memory. Such processes therefore stop within 15 seconds, with STORE_REPLACED; a
service manager starts them again, and they then use the restored tables.

Restore, adopt, then start the processes. A database in a file needs no adoption: processes notice that the file was replaced.`,
		Example: `  pg_restore --clean --dbname=runs runs.dump
  workflows-engine db adopt --store-url-file runs.url`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.flags.LoadStore(a.env)
			if err != nil {
				return err
			}
			a.warn(c, nil)
			if err := c.AdoptStore(cmd.Context()); err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.human, "%s has a new id; processes that used it before stop with %s\n", c.Location(), problem.StoreReplaced)
			return err
		},
	}
}

// migrateStore migrates the database, or prints the plan.
func (a *app) migrateStore(ctx context.Context, o migrateOptions) error {
	c, err := a.flags.LoadStore(a.env)
	if err != nil {
		return err
	}
	a.warn(c, nil)
	m, err := c.MigrateStore(ctx, o.dryRun, !o.noBackup)
	if err != nil {
		return err
	}
	if o.json {
		j := jsonvalue.Ordered{{"database", c.Location()}, {"from", m.From}, {"to", m.To}}
		if o.dryRun {
			j = append(j, jsonvalue.Ordered{{"dry_run", true}, {"runs", m.Runs}, {"bytes", m.Bytes}}...)
			j.Text("sql", m.SQL)
		}
		j.Text("backup", m.Backup)
		return writeEncoded(a.stdout, j)
	}
	from, at := config.VersionName(m.From), c.Location()
	if m.From == 0 {
		from = "no tables"
	}
	switch {
	case m.From >= m.To: // a newer release may have migrated it
		fmt.Fprintf(a.human, "%s has version %d: nothing to migrate\n", at, m.From)
	case o.dryRun && m.SQL != "": // standard output has only the statements, for psql
		a.say("%s, with %s, would be migrated from %s to version %d:\n", at, count(int(m.Runs), "run"), from, m.To)
		_, err = fmt.Fprintln(a.stdout, strings.TrimRight(m.SQL, "\n"))
	case o.dryRun:
		fmt.Fprintf(a.human, "%s, with %s, would be migrated from %s to version %d\n", at, count(int(m.Runs), "run"), from, m.To)
		if !o.noBackup {
			fmt.Fprintf(a.human, "the backup beside it would take %d bytes\n", m.Bytes)
		}
		fmt.Fprintln(a.human, "stop all processes that use the database first; they cannot be detected")
	default:
		fmt.Fprintf(a.human, "%s was migrated from %s to version %d\n", at, from, m.To)
		if m.Backup != "" {
			fmt.Fprintf(a.human, "backup: %s\n", m.Backup)
		}
	}
	return err
}
