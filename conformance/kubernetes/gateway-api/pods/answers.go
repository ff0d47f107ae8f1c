package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/websocket"
	"google.golang.org/grpc/metadata"
	pb "sigs.k8s.io/gateway-api/conformance/echo-basic/grpcechoserver"
)

// attempts counts the requests of each identifier that were to fail.
type attempts struct {
	sync.Mutex
	of map[string]int
}

// echoed is what the suite's client reads.
type echoed struct {
	Path    string      `json:"path"`
	Host    string      `json:"host"`
	Method  string      `json:"method"`
	Proto   string      `json:"proto"`
	Headers http.Header `json:"headers"`
	Port    string      `json:"httpPort"`
	identity
	TLS *tlsState `json:"tls,omitempty"`
}

type tlsState struct {
	Version            string   `json:"version"`
	PeerCertificates   []string `json:"peerCertificates,omitempty"`
	ServerName         string   `json:"serverName"`
	NegotiatedProtocol string   `json:"negotiatedProtocol,omitempty"`
	CipherSuite        string   `json:"cipherSuite"`
}

func (p *pod) routes() http.Handler {
	routes := http.NewServeMux()
	routes.HandleFunc("/", p.echo)
	routes.HandleFunc("/status/{code}", answerStatus)
	routes.HandleFunc("/retry/", p.failFirst)
	routes.Handle("/ws", websocket.Handler(func(connection *websocket.Conn) { _, _ = io.Copy(connection, connection) }))
	return http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		// The mux would redirect paths with empty segments.
		request.URL.Path = strings.ReplaceAll(request.URL.Path, "//", "/")
		routes.ServeHTTP(answer, request)
	})
}

func (p *pod) answerHTTP2(answer http.ResponseWriter, request *http.Request) {
	if request.ProtoMajor != 2 {
		http.Error(answer, "only HTTP/2 without TLS", http.StatusBadRequest)
		return
	}
	p.echo(answer, request)
}

func answerStatus(answer http.ResponseWriter, request *http.Request) {
	code, err := strconv.Atoi(request.PathValue("code"))
	if err != nil || code < 100 || code > 999 {
		code = http.StatusBadRequest
	}
	answer.WriteHeader(code)
}

func (p *pod) echo(answer http.ResponseWriter, request *http.Request) {
	p.log.add(fmt.Sprintf("Echoing back request made to %s to client (%s)", request.RequestURI, request.RemoteAddr))
	wait(request, "delay")
	for _, list := range request.Header["X-Echo-Set-Header"] {
		for one := range strings.SplitSeq(list, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(one), ":")
			set := answer.Header()
			if len(set[name]) > 0 {
				value = set[name][0] + "," + strings.TrimSpace(value)
			}
			set[name] = []string{value}
		}
	}
	answer.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(answer).Encode(echoed{
		Path: request.RequestURI, Host: request.Host, Method: request.Method, Proto: request.Proto,
		Headers: request.Header, Port: "3000", identity: p.identity, TLS: stateOf(request.TLS),
	})
}

func wait(request *http.Request, parameter string) {
	duration, err := time.ParseDuration(request.FormValue(parameter))
	if err != nil {
		return
	}
	select {
	case <-time.After(duration):
	case <-request.Context().Done():
	}
}

// failFirst lets the first requests of an identifier fail: by a reset, or by a status.
func (p *pod) failFirst(answer http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	identifier := query.Get("uuid")
	failures, err := strconv.Atoi(query.Get("succeedAfter"))
	if err != nil || identifier == "" {
		http.Error(answer, "uuid and succeedAfter are required", http.StatusBadRequest)
		return
	}
	if !p.retries.isFailure(identifier, failures) {
		p.echo(answer, request)
		return
	}
	wait(request, "delayRetry")
	if code, err := strconv.Atoi(query.Get("responseCode")); err == nil {
		answer.WriteHeader(code)
		return
	}
	connection, _, err := http.NewResponseController(answer).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if plain, isPlain := connection.(*net.TCPConn); isPlain {
		_ = plain.SetLinger(0)
	}
	_ = connection.Close()
}

func (a *attempts) isFailure(identifier string, failures int) bool {
	a.Lock()
	defer a.Unlock()
	if a.of == nil {
		a.of = map[string]int{}
	}
	if a.of[identifier] >= failures {
		return false
	}
	a.of[identifier]++
	return true
}

func stateOf(state *tls.ConnectionState) *tlsState {
	if state == nil {
		return nil
	}
	told := &tlsState{
		Version: strings.ReplaceAll(tls.VersionName(state.Version), "TLS ", "TLSv"), ServerName: state.ServerName,
		NegotiatedProtocol: state.NegotiatedProtocol, CipherSuite: tls.CipherSuiteName(state.CipherSuite),
	}
	for _, certificate := range state.PeerCertificates {
		block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
		told.PeerCertificates = append(told.PeerCertificates, string(block))
	}
	return told
}

// grpcEcho leaves EchoThree out, as the suite expects.
type grpcEcho struct {
	pb.UnimplementedGrpcEchoServer
	pod *pod
}

func (e *grpcEcho) Echo(call context.Context, _ *pb.EchoRequest) (*pb.EchoResponse, error) {
	return e.answer(call, pb.GrpcEcho_Echo_FullMethodName), nil
}

func (e *grpcEcho) EchoTwo(call context.Context, _ *pb.EchoRequest) (*pb.EchoResponse, error) {
	return e.answer(call, pb.GrpcEcho_EchoTwo_FullMethodName), nil
}

func (e *grpcEcho) answer(call context.Context, method string) *pb.EchoResponse {
	told := &pb.Assertions{
		FullyQualifiedMethod: method,
		Context:              &pb.Context{Namespace: e.pod.Namespace, ServiceName: e.pod.Service, Pod: e.pod.Pod},
	}
	fields, _ := metadata.FromIncomingContext(call)
	for name, values := range fields {
		for _, value := range values {
			told.Headers = append(told.Headers, &pb.Header{Key: name, Value: value})
			if name == ":authority" {
				told.Authority = value
			}
		}
	}
	return &pb.EchoResponse{Assertions: told}
}
