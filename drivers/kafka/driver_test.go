package kafka

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver/drivertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	addr := os.Getenv("KAFKA_TMP")
	drivertest.Run(t, Definition(), drivertest.Harness{
		Options: map[string][]string{"address": strings.Split(addr, ",")},
		Waive:   map[string]string{"LostConnectionReported": "x"},
		Stall: func() (func(), error) {
			b, _ := os.ReadFile(os.Getenv("KAFKA_PID"))
			pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
			if err != nil {
				return func() {}, err
			}
			return func() { _ = syscall.Kill(pid, syscall.SIGCONT); time.Sleep(time.Millisecond) }, syscall.Kill(pid, syscall.SIGSTOP)
		},
	})
}
