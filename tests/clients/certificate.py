"""Makes a certificate for localhost that vouches for itself: certificate.py CERTIFICATE KEY"""

import datetime
import ipaddress
import sys

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

key = ec.generate_private_key(ec.SECP256R1())
name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
now = datetime.datetime.now(datetime.timezone.utc)
names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
certificate = (
    x509.CertificateBuilder()
    .subject_name(name)
    .issuer_name(name)
    .public_key(key.public_key())
    .serial_number(x509.random_serial_number())
    .not_valid_before(now - datetime.timedelta(hours=1))
    .not_valid_after(now + datetime.timedelta(days=1))
    .add_extension(x509.SubjectAlternativeName(names), critical=False)
    .sign(key, hashes.SHA256())
)
with open(sys.argv[1], "wb") as file:
    file.write(certificate.public_bytes(serialization.Encoding.PEM))
form = serialization.PrivateFormat.PKCS8
with open(sys.argv[2], "wb") as file:
    file.write(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
