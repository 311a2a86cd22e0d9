package graph_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history/historysql"
)

const killedFile = "TEST_KILLED_FILE"

// begunThenKilled runs in a process of its own. It begins an attempt with a lease of an hour and says so; then it is killed.
func begunThenKilled(t *testing.T, file string) {
	work := activities.ExecutorFunc(func(ctx context.Context, _ activities.Request) (activities.Result, error) {
		fmt.Println("begun")
		<-ctx.Done()
		return activities.Result{}, context.Cause(ctx)
	})
	r := newRunner(t, openFile(t, file), graph.Options{Activities: work, LeaseTTL: time.Hour})
	if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: linear(t, "one", "a"), Wait: waitFor(time.Hour)}); err != nil {
		t.Fatal(err)
	}
}

func openFile(t *testing.T, file string) *historysql.Store {
	t.Helper()
	store, err := historysql.Open(context.Background(), file, historysql.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// TestTheRunsOfAKilledProcessGoOn: the lease of a process of this machine ends when the process is killed. Its runs go on elsewhere, with
// a call or without, long before the lease would have run out.
func TestTheRunsOfAKilledProcessGoOn(t *testing.T) {
	t.Parallel()
	if file := os.Getenv(killedFile); file != "" {
		begunThenKilled(t, file)
		return
	}
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skipf("%s does not tell which process has ended", runtime.GOOS)
	}
	for name, goesOn := range map[string]func(r *graph.Runner) error{
		"a worker": func(r *graph.Runner) error {
			_, err := r.Status(t.Context(), graph.StatusRequest{ExecutionID: "r", Wait: new(waitFor(time.Minute))})
			return err
		},
		"a call": func(r *graph.Runner) error {
			_, err := r.Drive(t.Context(), graph.DriveRequest{ExecutionID: "r", Caller: graph.Caller{Wait: waitFor(time.Minute)}})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "runs.db")
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTheRunsOfAKilledProcessGoOn$")
			cmd.Env = append(os.Environ(), killedFile+"="+file)
			out, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			if said, err := bufio.NewReader(out).ReadString('\n'); said != "begun\n" {
				t.Fatalf("%q, %v", said, err)
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			store := openFile(t, file)
			r := newRunner(t, store, graph.Options{Activities: &script{}, Work: workAll(name == "a worker")})
			if err := goesOn(r); err != nil {
				t.Fatal(err)
			}
			if run := status(t, r, "r"); run.Status != machine.Completed {
				t.Errorf("the run is %s", run.Status)
			}
		})
	}
}
