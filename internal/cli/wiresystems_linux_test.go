//go:build systems

package cli

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
)

// mosquittoWithTLS starts a real server, and returns its address.
func mosquittoWithTLS(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("mosquitto")
	if err != nil {
		if program = "/usr/sbin/mosquitto"; exec.Command(program, "-h").Run() != nil && !isFile(program) {
			needs.Host(t, "mosquitto", err)
		}
	}
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	at := l.Addr().(*net.TCPAddr)
	_ = l.Close()
	dir := t.TempDir()
	c := loopbackCertificate(t)
	key := must.Get(x509.MarshalPKCS8PrivateKey(c.PrivateKey))(t)
	conf := fmt.Sprintf("listener %d 127.0.0.1\nallow_anonymous true\nuser root\ncertfile %s/cert\nkeyfile %[2]s/key\n", at.Port, dir)
	for name, b := range map[string][]byte{
		"cert": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}),
		"key":  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
		"conf": []byte(conf),
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), b, 0o600))
	}
	cmd := exec.Command(program, "-c", filepath.Join(dir, "conf"))
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	must.Until(t, "mosquitto to listen", func() bool {
		c, err := net.Dial("tcp", at.String())
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return at.String()
}

func isFile(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestWireSeesThroughTLSOfMosquitto uses a real server.
func TestWireSeesThroughTLSOfMosquitto(t *testing.T) {
	at := mosquittoWithTLS(t)
	hiddenExact(t, wiredRun(t, "--driver", "mqtt", "--address", at, "--option", "tls.insecure=yes", "--option", "qos=1"))
}
