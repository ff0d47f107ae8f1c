package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/grpc"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/gateway-api/conformance/echo-basic/grpcechoserver"
)

type files struct{ certificate, key, clientRoots []byte }

// pod has the servers of one address.
type pod struct {
	identity
	address string
	labels  map[string]string
	closers []io.Closer
	log     lines
	retries attempts
}

// identity is what answers say of the pod.
type identity struct {
	Namespace string `json:"namespace"`
	Ingress   string `json:"ingress"`
	Service   string `json:"service"`
	Pod       string `json:"pod"`
}

func startPod(address, name, namespace string, template *core.PodSpec, given files) (*pod, error) {
	environment := map[string]string{}
	for _, variable := range template.Containers[0].Env {
		environment[variable.Name] = variable.Value
	}
	started := &pod{address: address, identity: identity{Namespace: namespace, Service: environment["SERVICE_NAME"], Pod: name}}
	if err := started.listenFor(environment, given); err != nil {
		started.close()
		return nil, err
	}
	return started, nil
}

func (p *pod) listenFor(environment map[string]string, given files) error {
	secure, err := tlsSettings(environment, given)
	if err != nil {
		return err
	}
	switch {
	case environment["GRPC_ECHO_SERVER"] != "":
		return p.listen(3000, p.serveGRPC)
	case environment["TCP_ECHO_SERVER"] != "":
		return p.listenBoth(secure, p.serveLines)
	case environment["POD_NAME"] == "" && len(environment) == 0:
		return nil // not an echo server
	}
	if err := p.listen(3001, p.serveHTTP2); err != nil {
		return err
	}
	return p.listenBoth(secure, p.serveHTTP)
}

func tlsSettings(environment map[string]string, given files) (*tls.Config, error) {
	if environment["TLS_SERVER_CERT"] == "" {
		return nil, nil
	}
	pair, err := tls.X509KeyPair(given.certificate, given.key)
	if err != nil {
		return nil, err
	}
	settings := &tls.Config{Certificates: []tls.Certificate{pair}}
	if environment["TLS_CLIENT_CACERTS"] != "" {
		settings.ClientAuth = tls.VerifyClientCertIfGiven
		settings.ClientCAs = x509.NewCertPool()
		settings.ClientCAs.AppendCertsFromPEM(given.clientRoots)
	}
	return settings, nil
}

func (p *pod) listenBoth(secure *tls.Config, serve func(net.Listener)) error {
	if err := p.listen(3000, serve); err != nil || secure == nil {
		return err
	}
	return p.listen(8443, func(plain net.Listener) {
		withProtocols := secure.Clone()
		withProtocols.NextProtos = []string{"http/1.1"}
		serve(tls.NewListener(plain, withProtocols))
	})
}

func (p *pod) listen(port int, serve func(net.Listener)) error {
	listener, err := net.Listen("tcp", fmt.Sprintf("%s:%d", p.address, port))
	if err != nil {
		return err
	}
	p.closers = append(p.closers, listener)
	go serve(listener)
	return nil
}

func (p *pod) close() {
	for _, closer := range p.closers {
		_ = closer.Close()
	}
}

func (p *pod) serveGRPC(listener net.Listener) {
	server := grpc.NewServer()
	grpcechoserver.RegisterGrpcEchoServer(server, &grpcEcho{pod: p})
	_ = server.Serve(listener)
}

func (p *pod) serveHTTP2(listener net.Listener) {
	server := &http.Server{Handler: http.HandlerFunc(p.answerHTTP2), Protocols: new(http.Protocols)}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	_ = server.Serve(listener)
}

func (p *pod) serveHTTP(listener net.Listener) {
	_ = (&http.Server{Handler: p.routes(), ErrorLog: log.New(io.Discard, "", 0)}).Serve(listener)
}

// serveLines answers the commands of the suite's tests of TCP and TLS.
func (p *pod) serveLines(listener net.Listener) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		go p.answerLines(connection)
	}
}

func (p *pod) answerLines(connection net.Conn) {
	defer connection.Close()
	answer := struct {
		identity
		TCPPort string    `json:"tcpport"`
		TLSPort string    `json:"tlsport"`
		IsTLS   bool      `json:"isTLS"`
		TLS     *tlsState `json:"tls,omitempty"`
	}{identity: p.identity, TCPPort: "3000", TLSPort: "8443"}
	if secure, isSecure := connection.(*tls.Conn); isSecure {
		if secure.HandshakeContext(context.Background()) != nil {
			return
		}
		state := secure.ConnectionState()
		answer.IsTLS, answer.TLS = true, stateOf(&state)
	}
	fmt.Fprintln(connection, "Gateway API Test TCP Server")
	for input := bufio.NewScanner(connection); input.Scan(); {
		switch input.Text() {
		case "TEST":
			encoded, _ := json.Marshal(answer)
			fmt.Fprintf(connection, "%s\n", encoded)
		case "IS_TLS":
			fmt.Fprintln(connection, answer.IsTLS)
		case "PING":
			fmt.Fprintln(connection, "PONG")
		}
	}
}

// sorted are the pods of a namespace by their names.
func (c *cluster) sorted(namespace string) []*pod {
	var found []*pod
	for _, one := range c.pods {
		if one.Namespace == namespace {
			found = append(found, one)
		}
	}
	slices.SortFunc(found, func(a, b *pod) int { return strings.Compare(a.Pod, b.Pod) })
	return found
}
