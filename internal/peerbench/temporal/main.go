// Command temporal measures how many durable activities a second a Temporal server on one SQLite file performs:
// workflows of 100 activities, one after another, in one run and in 50 at once. Server, worker and client are this one
// process.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	sqliteplugin "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/schema/sqlite"
	"go.temporal.io/server/temporal"
)

const activities = 100

func main() {
	rounds := flag.Int("rounds", 1, "how often each form is run")
	synchronous := flag.String("synchronous", "FULL", "SQLite's synchronous")
	flag.Parse()
	if err := measure(*rounds, *synchronous); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func measure(rounds int, synchronous string) error {
	folder, err := os.MkdirTemp("", "temporal-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	address, stop, err := serve(filepath.Join(folder, "runs.db"), synchronous)
	if err != nil {
		return err
	}
	defer stop()
	quiet := sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))
	var c client.Client
	for range 100 {
		if c, err = client.Dial(client.Options{HostPort: address, Logger: quiet}); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		return err
	}
	defer c.Close()
	w := worker.New(c, "nodes", worker.Options{})
	w.RegisterWorkflow(linear)
	w.RegisterActivity(node)
	if err := w.Start(); err != nil {
		return err
	}
	defer w.Stop()

	ctx := context.Background()
	run := func() error {
		r, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: "nodes"}, linear)
		if err != nil {
			return err
		}
		return r.Get(ctx, nil)
	}
	if err := run(); err != nil { // what is done once
		return err
	}
	for _, runs := range []int{1, 50} {
		begun := time.Now()
		for range rounds {
			var all sync.WaitGroup
			failed := make(chan error, runs)
			for range runs {
				all.Go(func() {
					if err := run(); err != nil {
						failed <- err
					}
				})
			}
			all.Wait()
			select {
			case err := <-failed:
				return err
			default:
			}
		}
		fmt.Printf("runs=%d %.0f nodes/s\n", runs, float64(rounds*runs*activities)/time.Since(begun).Seconds())
	}
	return nil
}

func linear(ctx workflow.Context) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	for i := range activities {
		if err := workflow.ExecuteActivity(ctx, node, i).Get(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

func node(_ context.Context, n int) (int, error) { return n, nil }

// serve starts a server with one shard on a new SQLite file.
func serve(path, synchronous string) (address string, stop func(), err error) {
	ports, err := freePorts(10)
	if err != nil {
		return "", nil, err
	}
	service := func(i int) config.Service {
		return config.Service{RPC: config.RPC{GRPCPort: ports[2*i], MembershipPort: ports[2*i+1], BindOnLocalHost: true}}
	}
	address = fmt.Sprintf("127.0.0.1:%d", ports[0])
	file := &config.SQL{
		PluginName: sqliteplugin.PluginName, DatabaseName: path,
		ConnectAttributes: map[string]string{"mode": "rwc", "_journal_mode": "wal", "_synchronous": synchronous},
	}
	const name = "active"
	conf := &config.Config{
		Global:              config.Global{Membership: config.Membership{MaxJoinDuration: 30 * time.Second, BroadcastAddress: "127.0.0.1"}},
		Persistence:         config.Persistence{DefaultStore: "file", VisibilityStore: "file", NumHistoryShards: 1, DataStores: map[string]config.DataStore{"file": {SQL: file}}},
		ClusterMetadata:     &cluster.Config{FailoverVersionIncrement: 10, MasterClusterName: name, CurrentClusterName: name, ClusterInformation: map[string]cluster.ClusterInformation{name: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: address}}},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Services:            map[string]config.Service{"frontend": service(0), "history": service(1), "matching": service(2), "worker": service(3)},
		PublicClient:        config.PublicClient{HostPort: address},
		Archival:            config.Archival{History: config.HistoryArchival{State: "disabled"}, Visibility: config.VisibilityArchival{State: "disabled"}},
		NamespaceDefaults: config.NamespaceDefaults{Archival: config.ArchivalNamespaceDefaults{
			History: config.HistoryArchivalNamespaceDefaults{State: "disabled"}, Visibility: config.VisibilityArchivalNamespaceDefaults{State: "disabled"},
		}},
	}
	if err := sqlite.SetupSchema(file); err != nil {
		return "", nil, err
	}
	namespace, err := sqlite.NewNamespaceConfig(name, "default", false, nil)
	if err != nil {
		return "", nil, err
	}
	if err := sqlite.CreateNamespaces(file, namespace); err != nil {
		return "", nil, err
	}
	s, err := temporal.NewServer(temporal.WithConfig(conf), temporal.ForServices(temporal.DefaultServices), temporal.WithLogger(log.NewNoopLogger()),
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return authorization.NewNoopClaimMapper() }))
	if err != nil {
		return "", nil, err
	}
	return address, func() { _ = s.Stop() }, s.Start()
}

func freePorts(n int) (ports []int, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
